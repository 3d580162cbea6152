package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lineage.WriteId;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** Virtual threads, by their names in the JDK: what is compiled for an older one runs there too. */
@EnabledForJreRange(min = JRE.JAVA_21, disabledReason = "virtual threads came with JDK 21")
class VirtualThreadsTest {
  private static final int TASKS = 1_000;

  private static ExecutorService threads() throws ReflectiveOperationException {
    return (ExecutorService)
        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
  }

  /** Writes in a virtual thread that waits meanwhile, and so may go on in another carrier. */
  private static boolean write(int number) throws InterruptedException {
    TimeUnit.MILLISECONDS.sleep(1);
    Antipode.append(WriteId.of("posts", "log-" + number, 1 + number));
    return Scope.currentOrNull() != null;
  }

  @Test
  void aScopeFollowsIntoWrappedOnes() throws Exception {
    ExecutorService threads = threads();
    try (ScopeBlock block = Antipode.scope()) {
      ExecutorService wrapped = Context.taskWrapping(threads);
      List<Future<Boolean>> tasks = new ArrayList<>();
      for (int number = 0; number < TASKS; number++) {
        int given = number;
        tasks.add(wrapped.submit(() -> write(given)));
      }
      for (Future<Boolean> each : tasks) {
        assertThat(each.get(30, TimeUnit.SECONDS)).isTrue();
      }
      assertThat(block.scope().lineage().writes()).hasSize(TASKS);
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void otherOnesHaveNone() throws Exception {
    ExecutorService threads = threads();
    try (ScopeBlock block = Antipode.scope()) {
      Future<Boolean> found = threads.submit(() -> Scope.currentOrNull() != null);
      assertThat(found.get(30, TimeUnit.SECONDS)).isFalse();
      assertThat(block.scope().isOpen()).isTrue();
    } finally {
      threads.shutdownNow();
    }
  }
}
