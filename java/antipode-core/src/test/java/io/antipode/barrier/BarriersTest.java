package io.antipode.barrier;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Allowance;
import io.antipode.runtime.Counts;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Barriers on the machine's clock; what each ends with is in the vectors of level 4. */
@Timeout(20)
class BarriersTest {
  private static final Duration LONG = Duration.ofSeconds(10);
  private static final Duration SHORT = Duration.ofMillis(60);
  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final BarrierOptions WAITING =
      BarrierOptions.timeout(LONG).withLineage(Lineage.of(WRITE));

  private final CountingShim shim = new CountingShim();

  /** A store whose logs are numbers in memory. */
  private static final class CountingShim extends Shim {
    volatile @Nullable ReadBarriers barriers;

    final Map<String, Long> logs = new ConcurrentHashMap<>();
    final AtomicInteger open = new AtomicInteger();
    final AtomicInteger looks = new AtomicInteger();
    volatile boolean isGone;

    /** What a look does first. */
    volatile Runnable onLook = () -> {};

    CountingShim() {
      super("posts", ReadsFrom.REPLICA);
    }

    @Override
    public boolean holdsReads() {
      return true;
    }

    @Override
    public @Nullable ReadBarriers barriers() {
      return barriers;
    }

    @Override
    public boolean canFence() {
      return true;
    }

    @Override
    public Set<WriteId> fence(Duration timeout) {
      return Set.of(WRITE.asCovering());
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      open.incrementAndGet();
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration timeout) {
          return look(writes);
        }

        @Override
        public void close() {
          open.decrementAndGet();
        }
      };
    }

    Observation look(Collection<WriteId> writes) {
      looks.incrementAndGet();
      onLook.run();
      if (isGone) {
        throw new UnreachableException("gone");
      }
      Observation.Builder shown = Observation.of("incarnation");
      for (WriteId write : writes) {
        if (logs.getOrDefault(write.key(), 0L) >= write.version()) {
          shown.write(write, Status.VISIBLE);
        }
      }
      return shown.build();
    }
  }

  @BeforeEach
  void register() {
    Shims.register(shim);
  }

  @AfterEach
  void close() {
    shim.close();
    assertThat(shim.open).hasValue(0);
    assertThat(Shims.watchers()).isEmpty();
  }

  /** Spins until it is so, for less than a barrier waits here. */
  private static void await(String what, BooleanSupplier isSo) {
    long begun = System.nanoTime();
    while (!isSo.getAsBoolean()) {
      Thread.onSpinWait();
      assertThat(System.nanoTime() - begun).as(what).isLessThan(LONG.toNanos() / 2);
    }
  }

  @Test
  void aBarrierThatBlocksEndsWhenTheWriteIsVisible() {
    CompletableFuture<Void> later =
        CompletableFuture.runAsync(
                () -> {
                  while (shim.looks.get() == 0) {
                    Thread.onSpinWait(); // The barrier waits by then, however slowly it began.
                  }
                })
            .thenCompose(looked -> after(SHORT, () -> shim.logs.put("log", 7L)));
    BarrierResult result = Barriers.barrier(WAITING);
    assertThat(shim.logs).containsKey("log");
    later.join();
    assertThat(result.isOk()).isTrue();
    assertThat(result.waited()).isBetween(Duration.ofMillis(10), Duration.ofSeconds(5));
  }

  @Test
  void aBarrierWithNothingToWaitForLooksOnceInTheCallersThread() {
    shim.logs.put("log", 7L);
    Barriers.barrier(WAITING); // Connects.
    int looks = shim.looks.get();
    Barriers.barrier(WAITING);
    assertThat(shim.looks).hasValue(looks + 1);
  }

  @Test
  void aBarrierThatCannotPassEndsAtItsDeadline() {
    Barriers.check(BarrierOptions.check().withLineage(Lineage.of(WRITE))); // Connects.
    BarrierTimeoutException error =
        catchThrowableOfType(
            BarrierTimeoutException.class,
            () -> Barriers.barrier(BarrierOptions.timeout(SHORT).withLineage(Lineage.of(WRITE))));
    assertThat(error.code()).isEqualTo("barrier_timeout");
    assertThat(error.result().unmet()).extracting(Outcome::status).containsOnly(Status.NOT_YET);
    assertThat(error).hasMessageContaining("posts[log]=7 not_yet");
  }

  /** The machine's clock, which a test may put forward. */
  private static final class ForwardClock implements Clock {
    volatile Duration forward = Duration.ZERO;

    @Override
    public long nanoTime() {
      return Clock.system().nanoTime() + forward.toNanos();
    }

    @Override
    public Instant now() {
      return Clock.system().now().plus(forward);
    }

    @Override
    public @Nullable Thread spawn(Stepper stepper) {
      return Clock.system().spawn(stepper);
    }

    @Override
    public Runnable schedule(Duration delay, Runnable task) {
      return Clock.system().schedule(delay, task);
    }

    @Override
    public void execute(Runnable task) {
      Clock.system().execute(task);
    }
  }

  @Test
  void aBarrierDoesNotWaitAgainForWhatALookInItsThreadTook() throws Exception {
    Barriers.check(BarrierOptions.check().withLineage(Lineage.of(WRITE))); // Connects.
    while (shim.watcher().tryLook(Set.of(WRITE), LONG) == null) {
      Thread.onSpinWait(); // Its thread is about to end.
    }
    ForwardClock clock = new ForwardClock();
    Duration timeout = Duration.ofSeconds(30);
    shim.onLook =
        () -> {
          clock.forward = clock.forward.plus(timeout);
          throw new UnreachableException("no answer");
        };
    BarrierOptions options =
        BarrierOptions.timeout(timeout).withLineage(Lineage.of(WRITE)).withClock(clock);
    assertThatThrownBy(() -> Barriers.barrier(options)) // Or the limit of this class is over.
        .isInstanceOf(BarrierTimeoutException.class);
  }

  @Test
  void aFutureHoldsTheResultOrTheErrorOfTheOneThatBlocks() {
    CompletableFuture<BarrierResult> result = Barriers.barrierAsync(WAITING);
    assertThat(result).isNotDone();
    shim.logs.put("log", 7L);
    assertThat(result.join().isOk()).isTrue();
    shim.logs.clear();
    CompletableFuture<BarrierResult> failing =
        Barriers.barrierAsync(BarrierOptions.timeout(SHORT).withLineage(Lineage.of(WRITE)));
    assertThatThrownBy(failing::join)
        .isInstanceOf(CompletionException.class)
        .hasCauseInstanceOf(BarrierTimeoutException.class);
  }

  @Test
  void aCallbackGetsTheResultMetOrUnmet() {
    CompletableFuture<BarrierResult> called = new CompletableFuture<>();
    Future<BarrierResult> unused =
        Barriers.barrierCallback(
            called::complete, BarrierOptions.timeout(SHORT).withLineage(Lineage.of(WRITE)));
    assertThat(called.join().isOk()).isFalse();
  }

  @Test
  void aCancelledBarrierLeavesNothingAndCallsNobody() throws Exception {
    CompletableFuture<BarrierResult> called = new CompletableFuture<>();
    Future<BarrierResult> handle = Barriers.barrierCallback(called::complete, WAITING);
    CompletableFuture<BarrierResult> result = Barriers.barrierAsync(WAITING);
    assertThat(Shims.watchers()).containsExactly("antipode-watch-posts");
    assertThat(handle.cancel(false)).isTrue();
    assertThat(result.cancel(false)).isTrue();
    await("nobody is watched for", () -> Shims.watchers().isEmpty());
    assertThat(called).isNotDone();
  }

  @Test
  void anInterruptedBarrierIsCancelledAndTheThreadStaysInterrupted() throws Exception {
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              assertThatThrownBy(() -> Barriers.barrier(WAITING))
                  .isInstanceOf(CancellationException.class);
              interrupted.complete(Thread.currentThread().isInterrupted());
            });
    thread.start();
    await("the barrier waits", () -> !Shims.watchers().isEmpty());
    thread.interrupt();
    assertThat(interrupted.get(5, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void closingAShimEndsWhoWaitsThere() {
    CompletableFuture<BarrierResult> result = Barriers.barrierAsync(WAITING);
    shim.close();
    assertThatThrownBy(result::join).hasCauseInstanceOf(VisibilityCheckException.class);
  }

  @Test
  void aCheckNeitherWaitsNorThrows() {
    BarrierOptions looking = BarrierOptions.check().withLineage(Lineage.of(WRITE));
    assertThat(Barriers.check(looking).isOk()).isFalse();
    assertThat(Barriers.checkAsync(looking).join().isOk()).isFalse();
    shim.logs.put("log", 7L);
    assertThat(Barriers.check(looking).isOk()).isTrue();
    int looks = shim.looks.get();
    assertThat(Barriers.check(looking.withoutRefresh()).isOk()).isFalse();
    assertThat(shim.looks).hasValue(looks);
    shim.isGone = true;
    assertThat(Barriers.check(looking).outcomes())
        .extracting(Outcome::status)
        .containsExactly(Status.UNREACHABLE);
  }

  @Test
  void aFenceStandsForWhatWasDropped() {
    Lineage shortened = Lineage.empty().marked(new Incomplete("posts", "size"));
    CompletableFuture<BarrierResult> result =
        Barriers.barrierAsync(BarrierOptions.timeout(LONG).withLineage(shortened));
    shim.logs.put("log", 7L);
    assertThat(result.join().outcomes())
        .extracting(Outcome::dependency)
        .containsExactly(WRITE.asCovering());
    assertThat(Barriers.barrier(BarrierOptions.timeout(LONG).withLineage(shortened)).incomplete())
        .isEmpty();
  }

  @Test
  void aReadIsHeldBackUntilItsConnectionShowsTheFloor() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      Floor floor = Floor.current(shim);
      assertThat(floor.writes()).containsExactly(WRITE);
      CompletableFuture<Void> later = after(SHORT, () -> shim.logs.put("log", 7L));
      floor.hold(shim, timeout -> shim.look(floor.writes()));
      assertThat(shim.logs).containsKey("log");
      later.join();
      assertThat(floor.isProvedOn("incarnation")).isTrue();
    }
  }

  @Test
  void aBarrierNeedsALineageOrAScope() {
    assertThatThrownBy(() -> Barriers.barrier(BarrierOptions.timeout(LONG)))
        .isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> BarrierOptions.timeout(Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static CompletableFuture<Void> after(Duration delay, Runnable action) {
    return CompletableFuture.runAsync(
        action, CompletableFuture.delayedExecutor(delay.toNanos(), TimeUnit.NANOSECONDS));
  }

  @Test
  void aBlockGoesBeforeTheShimAndThatBeforeTheSetting() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Floor.current(shim)).isNull();
      shim.barriers = ReadBarriers.AUTO;
      assertThat(Floor.current(shim)).isNotNull();
      try (Scope block = Barriers.explicit()) {
        assertThat(Floor.current(shim)).isNull();
        try (Scope inner = Barriers.auto()) {
          assertThat(Floor.current(shim)).isNotNull();
        }
      }
    }
  }

  @Test
  void whatAServerShowedIsRememberedUntilTheLineageChanges() {
    shim.barriers = ReadBarriers.AUTO;
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      Floor floor = requireNonNull(Floor.current(shim));
      assertThat(floor.isProvedOn("server")).isFalse();
      assertThat(floor.accepts(Observation.of("server").write(WRITE, Status.VISIBLE).build()))
          .isTrue();
      assertThat(requireNonNull(Floor.current(shim)).isProvedOn("server")).isTrue();
      Antipode.append(WriteId.of("posts", "log", 8));
      assertThat(requireNonNull(Floor.current(shim)).isProvedOn("server")).isFalse();
    }
  }

  /** What was shown of some demands says nothing of one more. */
  @Test
  void aFloorIsWithinOneThatDemandsAllOfIt() {
    Demand one = demand(WRITE);
    Demand other = demand(WriteId.of("posts", "log", 9));
    Floor first = new Floor("posts", List.of(one), Clock.system());
    Floor both = new Floor("posts", List.of(one, other), Clock.system());
    assertThat(first.isWithin(both)).isTrue();
    assertThat(both.isWithin(first)).isFalse();
    assertThat(first.isWithin(null)).isFalse();
  }

  private static Demand demand(WriteId write) {
    Policies policies = Policies.of(Settings.current(), Clock.system());
    return new Demand(Set.of(write), policies, new Allowance(LONG), Map.of());
  }

  /** A read that is shown all that can be shown is a proof, whatever its lineage misses. */
  @Test
  void anIncompleteLineageProvesWhatWasShown() throws Exception {
    shim.barriers = ReadBarriers.AUTO;
    shim.logs.put("log", 7L);
    Counts.Metric served = new Counts.Metric("served_stale", "posts");
    Lineage lineage = Lineage.of(WRITE).marked(new Incomplete("posts", "in_doubt"));
    try (ScopeBlock request = Antipode.scope(lineage)) {
      Floor floor = requireNonNull(Floor.current(shim));
      long before = Counts.all().getOrDefault(served, 0L);
      floor.hold(shim, timeout -> shim.look(floor.writes()));
      floor.pass();
      assertThat(Counts.all()).containsEntry(served, before + 1);
      assertThat(floor.isServed()).isFalse();
      assertThat(requireNonNull(Floor.current(shim)).isProvedOn("incarnation")).isTrue();
    }
  }

  @Test
  void whatABarrierDidNotGetIsLoggedOnceAMinute() {
    List<String> said = new CopyOnWriteArrayList<>();
    Handler handler =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            said.add(entry.getMessage());
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Lineage marked = Lineage.empty().marked(new Incomplete("marked-of-this-test", "in_doubt"));
    BarrierOptions options = BarrierOptions.timeout(LONG).withLineage(marked);
    Counts.LOG.addHandler(handler);
    try {
      assertThat(Barriers.check(BarrierOptions.check().withLineage(marked)).isOk()).isFalse();
      assertThat(said).isEmpty();
      for (int times = 0; times < 2; times++) {
        assertThatThrownBy(() -> Barriers.barrier(options))
            .isInstanceOf(IncompleteLineageException.class);
      }
    } finally {
      Counts.LOG.removeHandler(handler);
    }
    assertThat(said).hasSize(1);
    assertThat(said.get(0))
        .startsWith("a barrier did not see all that it depends on in 'marked-of-this-test'")
        .contains("(in_doubt). It ended with incomplete_lineage: ");
  }
}
