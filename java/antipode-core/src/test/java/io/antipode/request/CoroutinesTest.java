package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lineage.WriteId;
import io.opentelemetry.context.Context;
import io.opentelemetry.extension.kotlin.ContextExtensionsKt;
import kotlin.Unit;
import kotlin.coroutines.CoroutineContext;
import kotlinx.coroutines.BuildersKt;
import kotlinx.coroutines.Dispatchers;
import org.junit.jupiter.api.Test;

/** A scope in Kotlin's coroutines, by OpenTelemetry's element: it is in the context's own place. */
class CoroutinesTest {
  private static final WriteId WRITE = WriteId.of("posts", "log", 1);

  @Test
  void aDispatchersThreadHasTheScopeOfItsCoroutine() throws InterruptedException {
    Thread caller = Thread.currentThread();
    try (ScopeBlock request = Antipode.scope()) {
      CoroutineContext element = ContextExtensionsKt.asContextElement(Context.current());
      Unit unused =
          BuildersKt.runBlocking(
              element.plus(Dispatchers.getIO()),
              (coroutine, continuation) -> {
                assertThat(Thread.currentThread()).isNotSameAs(caller);
                Antipode.append(WRITE);
                return Unit.INSTANCE;
              });
      assertThat(Antipode.current().writes()).hasSize(1);
    }
  }
}
