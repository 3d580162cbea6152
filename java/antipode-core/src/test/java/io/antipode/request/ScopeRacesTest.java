package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.lineage.Budget;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Many threads at one scope: nothing is lost, nothing is torn, nothing throws. Threads begin each
 * round at once, for as long as {@link Budget} has it.
 */
@Tag("random")
class ScopeRacesTest {
  private static final int WRITES = 40;
  private static final int ROUND_S = 30;

  /** Which one of the writers is a branch. */
  private static final int BRANCH = 4;

  private final ExecutorService pool = Executors.newCachedThreadPool();

  /** What a thread does in a round, which it begins at the same time as the others. */
  private interface Task {
    void run() throws Exception;
  }

  @AfterEach
  void shutDown() {
    pool.shutdownNow();
  }

  private void atOnce(List<Task> tasks) throws Exception {
    CyclicBarrier start = new CyclicBarrier(tasks.size());
    List<Future<Boolean>> running = new ArrayList<>();
    for (Task task : tasks) {
      Callable<Boolean> begun =
          () -> {
            start.await(ROUND_S, TimeUnit.SECONDS);
            task.run();
            return true;
          };
      running.add(pool.submit(begun));
    }
    for (Future<Boolean> each : running) {
      assertThat(each.get(ROUND_S, TimeUnit.SECONDS)).isTrue();
    }
  }

  private static WriteId write(String datastore, int number) {
    return WriteId.of(datastore, "log-" + number, 1 + number).writtenAt(100);
  }

  private static void append(Scope scope, String datastore) {
    for (int number = 0; number < WRITES; number++) {
      scope.append(write(datastore, number));
    }
  }

  private static void merge(Scope scope, String datastore) {
    for (int number = 0; number < WRITES; number += 2) {
      scope.merge(Lineage.of(write(datastore, number), write(datastore, number + 1)));
    }
  }

  private static void defer(Scope scope, String datastore) {
    for (int number = 0; number < WRITES; number++) {
      Lineage sampled = Lineage.of(write(datastore, number));
      scope.defer(() -> sampled);
    }
  }

  /** A branch of its own, whose writes enter as it joins. */
  private static void branch(Scope scope, String datastore) {
    Promise promise = new Promise("p", "0".repeat(32), 4_000_000_000L);
    Scope inner = scope.fulfilling(promise);
    append(inner, datastore);
    inner.join(scope);
  }

  /** A lineage only grows, and each text that leaves is one of a moment. */
  private static void watch(Scope scope, AtomicBoolean over) {
    Lineage before = Lineage.empty();
    while (!over.get()) {
      Lineage now = scope.lineage();
      assertThat(now.merge(before)).isEqualTo(now);
      before = now;
      for (String text : List.of(scope.text(), scope.answer())) {
        assertThat(Lineage.deserialize(text).serialize()).isEqualTo(text);
      }
    }
  }

  private static List<Task> writers(Scope scope) {
    return List.of(
        () -> append(scope, "a"),
        () -> append(scope, "b"),
        () -> merge(scope, "c"),
        () -> defer(scope, "d"),
        () -> branch(scope, "e"),
        () -> {
          Scope other = Scope.startingFrom(Lineage.empty());
          append(other, "f");
          scope.merge(other.lineage());
        },
        () -> {
          for (int number = 0; number < WRITES; number++) {
            scope.markIncomplete("g", "reason-" + number);
            scope.began();
            scope.finished();
          }
        });
  }

  private static Lineage whole() {
    Lineage.Builder whole = Lineage.builder();
    for (int number = 0; number < WRITES; number++) {
      for (String datastore : List.of("a", "b", "c", "d", "e", "f")) {
        whole.write(write(datastore, number));
      }
      whole.incomplete(new Incomplete("g", "reason-" + number));
    }
    return whole.build();
  }

  @Test
  void nothingIsLostAndNothingIsTorn() throws Exception {
    Budget budget = new Budget();
    do {
      Scope scope = Scope.startingFrom(Lineage.empty());
      AtomicBoolean over = new AtomicBoolean();
      Future<?> watching = pool.submit(() -> watch(scope, over));
      try {
        atOnce(writers(scope));
      } finally {
        over.set(true);
      }
      watching.get(ROUND_S, TimeUnit.SECONDS);
      assertThat(scope.lineage()).isEqualTo(whole());
      assertThat(scope.leaving().openBranches()).isZero();
    } while (budget.isLeft());
  }

  @Test
  void whatIsWrittenWhileTheRequestEndsEnters() throws Exception {
    Budget budget = new Budget();
    do {
      Scope scope = Scope.startingFrom(Lineage.empty());
      List<Task> tasks = new ArrayList<>(writers(scope));
      tasks.add(scope::end);
      atOnce(tasks);
      assertThat(scope.isOpen()).isFalse();
      assertThat(scope.lineage()).isEqualTo(whole());
    } while (budget.isLeft());
  }

  @Test
  void nothingEntersAScopeThatIsStoppedMeanwhile() throws Exception {
    Budget budget = new Budget();
    do {
      Scope scope = Scope.startingFrom(Lineage.of(write("z", 1)));
      List<Task> tasks = new ArrayList<>(writers(scope));
      tasks.add(scope::stop);
      tasks.add(scope::stop);
      atOnce(tasks);
      assertThat(scope.lineage()).isEqualTo(Lineage.empty());
      assertThat(scope.text()).isEqualTo("1");
    } while (budget.isLeft());
  }

  @Test
  void aRemovalTakesItsEntryAndNoOther() throws Exception {
    Budget budget = new Budget();
    do {
      Scope scope = Scope.startingFrom(Lineage.empty());
      append(scope, "x");
      List<Task> tasks = new ArrayList<>(writers(scope));
      tasks.remove(BRANCH); // It would bring back what it began with.
      for (int half = 0; half < 2; half++) {
        int first = half;
        tasks.add(
            () -> {
              for (int number = first; number < WRITES; number += 2) {
                scope.remove(write("x", number));
              }
            });
      }
      atOnce(tasks);
      branch(scope, "e");
      assertThat(scope.lineage()).isEqualTo(whole());
    } while (budget.isLeft());
  }
}
