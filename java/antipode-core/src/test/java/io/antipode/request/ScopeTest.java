package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Counts.Metric;
import io.antipode.runtime.Time;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ScopeTest {
  private static final WriteId POST = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId USER = WriteId.of("users", "log", 7).writtenAt(100);
  private static final Incomplete SNAPSHOT = new Incomplete("", "snapshot");

  @AfterEach
  void defaults() {
    assertThat(Antipode.current()).as("a test left its scope current").isEqualTo(Lineage.empty());
    Settings.configure(settings -> Settings.defaults());
  }

  private static long count(String name, String datastore) {
    return Counts.all().getOrDefault(new Metric(name, datastore), 0L);
  }

  @Test
  void aBlockHasAScopeOfItsOwn() {
    try (ScopeBlock outer = Antipode.scope(Lineage.of(POST))) {
      try (ScopeBlock inner = Antipode.scope()) {
        Antipode.append(USER);
        assertThat(inner.scope().lineage()).isEqualTo(Lineage.of(USER));
      }
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST));
      assertThat(outer.scope().isOpen()).isTrue();
    }
    assertThat(Scope.currentOrNull()).isNull();
  }

  @Test
  void aWriteGetsTheHourInWhichItEnters() {
    var clock = Time.exchange(() -> Instant.ofEpochSecond(3_600 * 500_000L));
    try (ScopeBlock block = Antipode.scope()) {
      Antipode.append(WriteId.of("posts", "log", 1));
      assertThat(block.scope().lineage().writes().get(0).writtenHour()).isEqualTo(500_000);
    } finally {
      Time.exchange(clock);
    }
  }

  @Test
  void writesEnterAnEndedScopeAndNotAStoppedOne() {
    ScopeBlock block = Antipode.scope();
    Scope scope = block.scope();
    block.close();
    assertThat(scope.append(POST)).isEqualTo(Lineage.of(POST));
    scope.stop();
    assertThat(scope.append(USER)).isEqualTo(Lineage.empty());
  }

  /** Neither what is read, nor a sample that is asked for later. */
  @Test
  void nothingIsReadIntoAStoppedScope() {
    List<WriteId> sampled = new ArrayList<>();
    try (ScopeBlock block = Antipode.scope()) {
      Scope scope = block.scope();
      scope.stop();
      scope.merge(Lineage.of(USER));
      scope.defer(
          () -> {
            sampled.add(POST);
            return Lineage.of(POST);
          });
      assertThat(scope.lineage()).isEqualTo(Lineage.empty());
    }
    assertThat(sampled).isEmpty();
  }

  @Test
  void stopDiscardsTheLineageForAllBranches() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Context copied = Context.current();
      Antipode.stop();
      assertThat(Scope.fromContextOrNull(copied)).isNull();
      assertThat(Scope.isStoppedInCurrent()).isTrue();
      assertThat(block.scope().lineage()).isEqualTo(Lineage.empty());
    }
    Antipode.stop();
  }

  @Test
  void rootBeginsARequestWithoutABlockUntilItIsStopped() {
    Antipode.root();
    Antipode.append(POST);
    assertThat(Antipode.current()).isEqualTo(Lineage.of(POST));
    Antipode.stop();
    assertThat(Context.current()).isEqualTo(Context.root());
  }

  @Test
  void removeTakesAWriteOut() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST, USER))) {
      assertThat(Antipode.remove(POST)).isEqualTo(Lineage.of(USER));
    }
    assertThat(Antipode.remove(POST)).isEqualTo(Lineage.empty());
  }

  @Test
  void transferTakesALineageOrATextAndBoundsWhatItSaysOfTheFuture() {
    long late = WriteId.MAX_WRITTEN_HOUR;
    try (ScopeBlock block = Antipode.scope()) {
      Antipode.transfer(Lineage.of(POST));
      Antipode.transfer(Lineage.of(USER.writtenAt(late)).serialize());
      assertThat(block.scope().lineage()).isEqualTo(Lineage.of(POST, USER.writtenAt(Time.hour())));
    }
    assertThatThrownBy(() -> Antipode.transfer("no lineage"))
        .isInstanceOf(LineageDecodeException.class);
  }

  @Test
  void whatFindsNoScopeIsCounted() {
    long before = count("unscoped_append", "posts");
    assertThat(Antipode.append(POST)).isEqualTo(Lineage.of(POST));
    assertThat(count("unscoped_append", "posts")).isEqualTo(before + 1);
    long writes = count("unscoped_write", "posts");
    Recording.recordWrite(POST);
    assertThat(count("unscoped_write", "posts")).isEqualTo(writes + 1);
  }

  @Test
  void whatFindsNoScopeRaisesWhereThatIsWanted() {
    Settings.configure(settings -> settings.withOnUnscoped(Policy.RAISE));
    assertThatThrownBy(() -> Antipode.append(POST))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("append to 'posts'")
        .hasMessageContaining("outside of a scope");
    assertThatThrownBy(() -> Antipode.transfer(Lineage.of(POST)))
        .isInstanceOf(ConfigurationException.class);
  }

  @Test
  void theTextIsWithinTheSettings() {
    Settings.configure(settings -> settings.withEgress(Set.of("posts")));
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST, USER))) {
      long hidden = count("dropped_for_egress", "users");
      assertThat(Lineage.deserialize(Antipode.serialize()))
          .isEqualTo(Lineage.of(POST).marked(new Incomplete("", "egress")));
      assertThat(count("dropped_for_egress", "users")).isEqualTo(hidden + 1);
    }
  }

  @Test
  void whatDoesNotFitIsCounted() {
    Settings.configure(settings -> settings.withMaxLineageBytes(64));
    long dropped = count("dropped_for_size", "posts");
    try (ScopeBlock block = Antipode.scope()) {
      for (int i = 0; i < 20; i++) {
        Antipode.append(WriteId.of("posts", "key" + i, i));
      }
      assertThat(block.scope().text()).hasSizeLessThanOrEqualTo(64 - "antipode=".length());
    }
    assertThat(count("dropped_for_size", "posts")).isEqualTo(dropped + 1);
  }

  @Test
  void theBaggageSaysThatItIsASnapshot() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      String text = Baggage.current().getEntryValue(Scope.MEMBER);
      assertThat(Lineage.deserialize(text)).isEqualTo(Lineage.of(POST).marked(SNAPSHOT));
    }
    assertThat(Baggage.current().isEmpty()).isTrue();
  }

  @Test
  void theUsersBaggageStays() {
    Baggage users = Baggage.builder().put("tenant", "t1").build();
    try (var entered = users.makeCurrent();
        ScopeBlock block = Antipode.scope()) {
      assertThat(Baggage.current().getEntryValue("tenant")).isEqualTo("t1");
    }
  }

  @Test
  void anAnswerBringsBackWhatWasAdded() {
    Promise promise = new Promise("posts", "00112233445566778899aabbccddeeff", 9_999_999_999L);
    Scope scope = Scope.ofRequest(Lineage.of(POST).append(promise), null);
    assertThat(scope.answer()).isEqualTo("1");
    scope.append(USER);
    assertThat(Lineage.deserialize(scope.answer())).isEqualTo(Lineage.of(USER));
    long late = count("after_response_write", "users");
    scope.append(USER.writtenAt(101));
    assertThat(count("after_response_write", "users")).isEqualTo(late + 1);
  }

  @Test
  void deferredReadsAreSampledOnceWhenTheLineageIsUsed() {
    List<String> sampled = new ArrayList<>();
    try (ScopeBlock block = Antipode.scope()) {
      Recording.deferRead(
          () -> {
            sampled.add("once");
            return Lineage.of(POST.asCovering());
          });
      assertThat(sampled).isEmpty();
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST.asCovering()));
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST.asCovering()));
    }
    assertThat(sampled).containsExactly("once");
  }

  // Blocks that end in another order.

  @Test
  void aBlockThatStillRunsStaysCurrent() {
    long before = count("scope_out_of_order", "");
    ScopeBlock first = Antipode.scope(Lineage.of(POST));
    ScopeBlock second = Antipode.scope(Lineage.of(USER));
    first.close();
    assertThat(Antipode.current()).isEqualTo(Lineage.of(USER));
    assertThat(count("scope_out_of_order", "")).isEqualTo(before + 1);
    second.close();
    assertThat(Scope.currentOrNull()).as("no ended scope becomes current again").isNull();
    second.close();
    first.close();
  }

  @Test
  void aBlockThatIsClosedElsewhereLeavesThatThreadAlone() throws Exception {
    ScopeBlock block = Antipode.scope(Lineage.of(POST));
    try (ScopeBlock other = Antipode.scope(Lineage.of(USER))) {
      Context context = Context.current();
      Thread thread =
          new Thread(
              context.wrap(
                  () -> {
                    block.close();
                    assertThat(Antipode.current()).isEqualTo(Lineage.of(USER));
                  }));
      thread.start();
      thread.join();
      assertThat(block.scope().isOpen()).isFalse();
    }
    assertThat(Scope.currentOrNull()).isNull();
  }

  // Promises.

  @Test
  void aPromiseEntersTheScope() {
    try (ScopeBlock block = Antipode.scope()) {
      Promise promise = Antipode.promise("posts", Duration.ofSeconds(60));
      assertThat(Antipode.current()).isEqualTo(Lineage.empty().append(promise));
    }
    assertThatThrownBy(() -> Antipode.promise("posts", Duration.ofDays(8)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Antipode.promise("posts", Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aBranchHasEverythingButItsPromiseAndJoinsAtItsEnd() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Promise promise = Antipode.promise("users", Duration.ofSeconds(60));
      Scope inner;
      try (ScopeBlock branch = Antipode.fulfilling(promise.token())) {
        inner = branch.scope();
        assertThat(inner.lineage()).isEqualTo(Lineage.of(POST));
        assertThat(inner.own()).containsExactly(promise.name());
        Antipode.transfer(Lineage.of(USER).append(promise));
        assertThat(inner.lineage()).isEqualTo(Lineage.of(POST, USER));
      }
      assertThat(Antipode.current()).isEqualTo(Lineage.of(POST, USER).append(promise));
      inner.append(WriteId.of("late", "log", 1).writtenAt(100));
      assertThat(Antipode.current().only("late").writes()).hasSize(1);
    }
  }

  @Test
  void aBranchThatIsStoppedStopsItsRequest() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      try (ScopeBlock branch =
          Antipode.fulfilling(Antipode.promise("users", Duration.ofHours(1)))) {
        Antipode.stop();
      }
      assertThat(block.scope().lineage()).isEqualTo(Lineage.empty());
    }
  }

  // Branches.

  @Test
  void aTaskIsAnOpenBranchUntilItHasEnded() throws Exception {
    ExecutorService pool = Executors.newSingleThreadExecutor();
    try (ScopeBlock block = Antipode.scope()) {
      Callable<Lineage> task = Antipode.branch((Callable<Lineage>) () -> Antipode.append(POST));
      assertThat(block.scope().leaving().openBranches()).isEqualTo(1);
      assertThat(pool.submit(task).get()).isEqualTo(Lineage.of(POST));
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(POST));
      Runnable failing =
          Antipode.branch(
              (Runnable)
                  () -> {
                    throw new IllegalStateException("of the task");
                  });
      assertThatThrownBy(failing::run).hasMessage("of the task");
      assertThat(block.scope().leaving().openBranches()).isZero();
    } finally {
      pool.shutdownNow();
    }
  }

  @Test
  void concurrentAdditionsAreAllInIt() throws Exception {
    int threads = 4;
    int each = 250;
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try (ScopeBlock block = Antipode.scope()) {
      CyclicBarrier together = new CyclicBarrier(threads);
      List<Future<?>> futures = new ArrayList<>();
      for (int thread = 0; thread < threads; thread++) {
        String key = "t" + thread + "-";
        futures.add(
            pool.submit(
                Antipode.branch(
                    (Callable<Void>)
                        () -> {
                          together.await();
                          for (int i = 0; i < each; i++) {
                            Antipode.append(WriteId.of("posts", key + i, 1));
                          }
                          return null;
                        })));
      }
      for (Future<?> future : futures) {
        future.get();
      }
      assertThat(block.scope().leaving().writes()).hasSize(threads * each);
      assertThat(block.scope().leaving().openBranches()).isZero();
    } finally {
      pool.shutdownNow();
    }
  }
}
