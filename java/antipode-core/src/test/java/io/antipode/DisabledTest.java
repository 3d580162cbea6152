package io.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.context.Context;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Runs in a process of its own, in whose environment {@code ANTIPODE_DISABLED} is true. */
@Tag("disabled")
class DisabledTest {
  private static final WriteId POST = WriteId.of("posts", "log", 5).writtenAt(100);

  @Test
  void noContextHasAScope() {
    assertThat(KillSwitch.isDisabled()).isTrue();
    Context before = Context.current();
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      assertThat(Scope.currentOrNull()).isNull();
      assertThat(Context.current()).isSameAs(before);
      assertThat(block.scope().lineage()).as("its own").isEqualTo(Lineage.of(POST));
      assertThat(block.scope().storeInContext(before)).isSameAs(before);
    }
    Antipode.root();
    assertThat(Context.current()).isSameAs(before);
  }

  @Test
  void nothingIsCountedAsWithoutAScope() {
    Settings held = Settings.configure(settings -> settings.withOnUnscoped(Policy.RAISE));
    try {
      assertThatCode(() -> Antipode.append(POST)).doesNotThrowAnyException();
      assertThatCode(() -> Recording.recordWrite(POST)).doesNotThrowAnyException();
      assertThat(Counts.all().keySet()).noneMatch(metric -> metric.name().startsWith("unscoped"));
    } finally {
      Settings.configure(settings -> held);
    }
  }
}
