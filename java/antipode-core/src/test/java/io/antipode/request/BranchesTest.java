package io.antipode.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.opentelemetry.context.Context;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Scopes in other threads, and what threads do to one scope at the same time. */
class BranchesTest {
  private static final WriteId POST = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId USER = WriteId.of("users", "log", 7).writtenAt(100);

  private final ExecutorService pool = Executors.newFixedThreadPool(4);

  @AfterEach
  void shutDown() {
    pool.shutdownNow();
  }

  @Test
  void contextsThatAreWrappedByOpenTelemetryShareTheScope() throws Exception {
    try (ScopeBlock block = Antipode.scope()) {
      Context.taskWrapping(pool).submit(() -> Antipode.append(POST)).get();
      CompletableFuture.supplyAsync(
              Context.current().wrapSupplier(() -> Antipode.append(USER)), pool)
          .get();
      assertThat(block.scope().lineage()).isEqualTo(Lineage.of(POST, USER));
    }
  }

  @Test
  void aThreadThatNobodyToldHasNoScope() throws Exception {
    try (ScopeBlock block = Antipode.scope()) {
      Future<@Nullable Scope> found = pool.submit(Scope::currentOrNull);
      assertThat(found.get()).isNull();
    }
  }

  @Test
  void tasksOfABranchingExecutorAreBranches() throws Exception {
    ExecutorService branching = Antipode.branching(pool);
    CountDownLatch started = new CountDownLatch(2);
    CountDownLatch goOn = new CountDownLatch(1);
    Callable<Lineage> task =
        () -> {
          started.countDown();
          goOn.await();
          return Antipode.append(POST);
        };
    try (ScopeBlock block = Antipode.scope()) {
      List<Future<Lineage>> futures = List.of(branching.submit(task), branching.submit(task));
      started.await();
      assertThat(block.scope().leaving().openBranches()).isEqualTo(2);
      goOn.countDown();
      for (Future<Lineage> future : futures) {
        assertThat(future.get()).isEqualTo(Lineage.of(POST));
      }
      assertThat(block.scope().leaving().openBranches()).isZero();
      branching.invokeAll(List.of(task, task));
      assertThat(branching.invokeAny(List.of(task))).isEqualTo(Lineage.of(POST));
      assertThat(block.scope().leaving().openBranches()).isZero();
    }
    assertThat(Scope.currentOrNull()).isNull();
  }

  @Test
  void completableFuturesRunInTheScope() throws Exception {
    try (ScopeBlock block = Antipode.scope()) {
      CompletableFuture<Lineage> future =
          CompletableFuture.supplyAsync(() -> Antipode.append(POST), Antipode.branching(pool))
              .thenApplyAsync(found -> Antipode.append(USER), Antipode.branching(pool));
      assertThat(future.get()).isEqualTo(Lineage.of(POST, USER));
      assertThat(block.scope().leaving().openBranches()).isZero();
      for (int i = 0; i < 100; i++) {
        CompletableFuture.supplyAsync(Antipode.branchSupplier(Antipode::current), pool).get();
        assertThat(block.scope().leaving().openBranches())
            .as("over before whoever waits for it learns of its end")
            .isZero();
      }
    }
  }

  @Test
  @SuppressWarnings("ThreadPriorityCheck") // The collector needs a turn.
  void aTaskThatWillNeverRunIsNoBranch() throws Exception {
    try (ScopeBlock block = Antipode.scope()) {
      ExecutorService branching = Antipode.branching(pool);
      pool.shutdown();
      assertThatThrownBy(() -> branching.execute(() -> Antipode.append(POST)))
          .isInstanceOf(RejectedExecutionException.class);
      long deadline = System.nanoTime() + 20_000_000_000L;
      while (block.scope().leaving().openBranches() > 0 && System.nanoTime() < deadline) {
        System.gc();
        Thread.yield();
      }
      assertThat(block.scope().leaving().openBranches()).isZero();
    }
  }

  // At the same time. Each round is a chance of a race.

  private static final int ROUNDS = 2_000;

  private interface Step {
    void run() throws Exception;
  }

  private void together(Step one, Step other) throws Exception {
    CyclicBarrier start = new CyclicBarrier(2);
    Future<?> first = pool.submit(() -> started(start, one));
    Future<?> second = pool.submit(() -> started(start, other));
    first.get();
    second.get();
  }

  private static @Nullable Void started(CyclicBarrier start, Step step) throws Exception {
    start.await();
    step.run();
    return null;
  }

  @Test
  void nothingEntersAScopeThatIsStoppedMeanwhile() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      Scope scope = Scope.startingFrom(Lineage.empty());
      together(() -> scope.append(POST), scope::stop);
      assertThat(scope.lineage()).isEqualTo(Lineage.empty());
    }
  }

  @Test
  void aWriteOfABranchThatJoinsMeanwhileIsInTheRequest() throws Exception {
    Promise promise = new Promise("posts", "00112233445566778899aabbccddeeff", 9_999_999_999L);
    for (int round = 0; round < ROUNDS; round++) {
      Scope outer = Scope.startingFrom(Lineage.empty());
      Scope inner = outer.fulfilling(promise);
      together(() -> inner.append(POST), () -> inner.join(outer));
      assertThat(outer.lineage()).isEqualTo(Lineage.of(POST));
    }
  }

  @Test
  void aReadIsSampledOnceAndSeenByAll() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      Scope scope = Scope.startingFrom(Lineage.empty());
      scope.defer(() -> Lineage.of(POST.asCovering()));
      together(
          () -> assertThat(scope.lineage()).isEqualTo(Lineage.of(POST.asCovering())),
          () -> assertThat(scope.lineage()).isEqualTo(Lineage.of(POST.asCovering())));
    }
  }

  @Test
  void aScopeIsTakenOverOnce() throws Exception {
    Object carrier = new Object();
    for (int round = 0; round < ROUNDS; round++) {
      Scope scope = Scope.extracted(Lineage.empty(), carrier);
      boolean[] taken = new boolean[2];
      together(
          () -> taken[0] = scope.takeOver(carrier::equals),
          () -> taken[1] = scope.takeOver(carrier::equals));
      assertThat(taken[0] ^ taken[1]).isTrue();
    }
  }

  /** Attached numbers add up. */
  private record Total(int value) implements Attachment<Total> {
    private static final Attachment.Key<Total> KEY = new Attachment.Key<>(Total.class);

    @Override
    public Total joined(Total later) {
      return new Total(value + later.value);
    }

    @Override
    public Total branched(Set<String> own) {
      return this;
    }
  }

  @Test
  void whatIsAttachedAtTheSameTimeIsJoined() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      Scope scope = Scope.startingFrom(Lineage.empty());
      together(
          () -> IntStream.range(0, 5).forEach(i -> scope.attach(Total.KEY, new Total(1))),
          () -> IntStream.range(0, 5).forEach(i -> scope.attach(Total.KEY, new Total(1))));
      assertThat(Objects.requireNonNull(scope.attachment(Total.KEY)).value).isEqualTo(10);
    }
  }
}
