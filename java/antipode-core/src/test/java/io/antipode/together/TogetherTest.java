package io.antipode.together;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.Policy;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnknownDatastoreException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Work that runs once for several requests. */
@Timeout(30)
class TogetherTest {
  private static final Lineage READ =
      Lineage.of(WriteId.of("users", "log", 9).writtenAt(498_669).asCovering());
  private static final BarrierOptions BARRIER =
      BarrierOptions.timeout(Duration.ofSeconds(5)).withOnUnknown(Policy.RAISE);

  private final List<List<Integer>> runs = new ArrayList<>();
  private final List<Lineage> found = new ArrayList<>();

  /** What a run's caller gets of it, as long as it is under way. */
  private final Queue<CompletableFuture<Void>> gates = new ConcurrentLinkedQueue<>();

  private static WriteId post(int number) {
    return WriteId.of("posts", "p" + number, 1).writtenAt(498_669);
  }

  /** Ten times each item, once its gate is open. */
  private CompletableFuture<List<Integer>> tenTimes(List<Integer> items) {
    runs.add(items);
    found.add(Antipode.current());
    Recording.recordRead(READ);
    CompletableFuture<Void> gate = new CompletableFuture<>();
    gates.add(gate);
    return gate.thenApply(any -> items.stream().map(each -> each * 10).toList());
  }

  private void open() {
    gates.remove().complete(null);
  }

  /**
   * While the work runs calls wait for the next run; each gets what was added, no others' causes.
   */
  @Test
  void callsOfSeveralRequestsRunAsOne() {
    TogetherAsync<Integer, Integer> work = TogetherAsync.of(this::tenTimes);
    List<ScopeBlock> blocks = new ArrayList<>();
    List<CompletableFuture<Integer>> answers = new ArrayList<>();
    List<Lineage> after = new ArrayList<>();
    for (int i = 1; i <= 3; i++) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(post(i)))) {
        blocks.add(block);
        answers.add(work.call(i));
      }
    }
    open();
    open();
    blocks.forEach(each -> after.add(each.scope().lineage()));
    assertThat(answers).allSatisfy(each -> assertThat(each).isCompleted());
    assertThat(answers.stream().map(CompletableFuture::join)).containsExactly(10, 20, 30);
    assertThat(runs).containsExactly(List.of(1), List.of(2, 3));
    assertThat(found).containsExactly(Lineage.of(post(1)), Lineage.of(post(2), post(3)));
    for (int i = 1; i <= 3; i++) {
      assertThat(after.get(i - 1)).isEqualTo(READ.append(post(i)));
    }
  }

  /** What is read counts as added where another caller had brought it. */
  @Test
  void whatAnotherCallerBroughtIsAddedWhereItIsRead() {
    TogetherAsync<Integer, Integer> work = TogetherAsync.of(this::tenTimes);
    try (ScopeBlock first = Antipode.scope()) {
      var unused = work.call(0);
      ScopeBlock knows = Antipode.scope(READ);
      var known = work.call(1);
      knows.close();
      ScopeBlock knowsNot = Antipode.scope();
      var other = work.call(2);
      knowsNot.close();
      open();
      open();
      assertThat(List.of(known.join(), other.join())).containsExactly(10, 20);
      assertThat(knowsNot.scope().lineage()).isEqualTo(READ);
    }
  }

  /** Who brought what is unknown has an error about that alone; it runs again for the others. */
  @Test
  void whoBroughtWhatIsNotMetFailsAlone() {
    TogetherAsync<Integer, Integer> async =
        TogetherAsync.of(
            items -> {
              if (items.contains(0)) {
                return tenTimes(items);
              }
              Barriers.barrier(BARRIER);
              Recording.recordRead(READ);
              return CompletableFuture.completedFuture(items);
            });
    var first = async.call(0);
    List<CompletableFuture<Integer>> answers = new ArrayList<>();
    List<ScopeBlock> blocks = new ArrayList<>();
    for (int i = 1; i <= 3; i++) {
      try (ScopeBlock block =
          Antipode.scope(i == 2 ? Lineage.of(post(2), post(5)) : Lineage.empty())) {
        blocks.add(block);
        answers.add(async.call(i));
      }
    }
    open();
    assertThat(first).isCompletedWithValue(0);
    assertThat(answers.get(0)).isCompletedWithValue(1);
    assertThat(answers.get(2)).isCompletedWithValue(3);
    assertThat(answers.get(1))
        .failsWithin(Duration.ZERO)
        .withThrowableThat()
        .havingCause()
        .isInstanceOfSatisfying(
            UnknownDatastoreException.class,
            error -> assertThat(error.result().outcomes()).hasSize(2));
    assertThat(blocks.get(1).scope().lineage()).isEqualTo(Lineage.of(post(2), post(5)));
    assertThat(blocks.get(0).scope().lineage()).isEqualTo(READ);
  }

  /** A mark fails its caller; work that has written does not run again. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void workThatHasWrittenDoesNotRunAgain(boolean writes) {
    AtomicInteger times = new AtomicInteger();
    TogetherAsync<Integer, Integer> work =
        TogetherAsync.of(
            items -> {
              if (items.contains(0)) {
                return tenTimes(items);
              }
              times.incrementAndGet();
              if (writes) {
                Antipode.append(WriteId.of("log", "l", 3));
              }
              Barriers.barrier(BARRIER.withOnly());
              return CompletableFuture.completedFuture(items);
            });
    var first = work.call(0);
    Lineage marked = Lineage.empty().marked(new Incomplete("", "unsampled"));
    List<CompletableFuture<Integer>> answers = new ArrayList<>();
    for (Lineage each : List.of(Lineage.empty(), marked)) {
      try (ScopeBlock block = Antipode.scope(each)) {
        answers.add(work.call(1));
      }
    }
    open();
    assertThat(first).isCompleted();
    assertThat(answers.get(1)).isCompletedExceptionally();
    assertThat(answers.get(0).isCompletedExceptionally()).isEqualTo(writes);
    assertThat(times).hasValue(writes ? 1 : 2);
  }

  /** Calls of different keys do not share a run. */
  @Test
  void tenantsAreApart() {
    TogetherAsync<Integer, Integer> work =
        TogetherAsync.<Integer, Integer>of(this::tenTimes).keyed(item -> item % 2);
    List<CompletableFuture<Integer>> answers = IntStream.range(0, 6).mapToObj(work::call).toList();
    IntStream.range(0, 4).forEach(any -> open());
    assertThat(answers).allSatisfy(each -> assertThat(each).isCompleted());
    assertThat(runs)
        .containsExactlyInAnyOrder(List.of(0), List.of(1), List.of(2, 4), List.of(3, 5));
  }

  /** A call within a run of the same work is a part of it. */
  @Test
  void aCallWithinARunDoesNotWaitForIt() {
    List<Together<Integer, Integer>> self = new ArrayList<>();
    self.add(
        Together.of(
            items ->
                items.stream()
                    .map(each -> each == 0 ? 0 : self.get(0).call(each - 1) + 1)
                    .toList()));
    assertThat(self.get(0).call(5)).isEqualTo(5);
  }

  /** One result that is an error is its caller's; results that are too few are everybody's. */
  @Test
  void failuresOfItems() {
    Together<Integer, Object> work =
        Together.of(
            items ->
                items.get(0) < 0
                    ? List.of(new IllegalArgumentException("no item"))
                    : items.get(0) > 0 ? List.of() : List.of(1));
    assertThat(work.call(0)).isEqualTo(1);
    assertThatThrownBy(() -> work.call(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> work.call(1)).hasMessageContaining("0 results for 1 items");
  }

  /** Nobody runs for a call that was cancelled while it waited. */
  @Test
  void aCancelledCallIsLeftOut() {
    TogetherAsync<Integer, Integer> work = TogetherAsync.of(this::tenTimes);
    var first = work.call(1);
    var gone = work.call(2);
    assertThat(gone.cancel(false)).isTrue();
    open();
    assertThat(first).isCompletedWithValue(10);
    assertThat(runs).hasSize(1);
    var next = work.call(3);
    open();
    assertThat(next).isCompletedWithValue(30);
  }

  /** However many calls are made as the runs before them end. */
  @Test
  void aLongChainOfCallsIsNoDeepStack() {
    TogetherAsync<Integer, Integer> work = TogetherAsync.of(CompletableFuture::completedFuture);
    AtomicInteger left = new AtomicInteger(50_000);
    CompletableFuture<Void> over = new CompletableFuture<>();
    Runnable[] again = new Runnable[1];
    again[0] =
        () -> {
          if (left.decrementAndGet() < 0) {
            over.complete(null);
          } else {
            var unused =
                work.call(1).whenCompleteAsync((result, error) -> again[0].run(), Runnable::run);
          }
        };
    Thread thread = new Thread(null, again[0], "chain", 64 << 20);
    thread.start();
    assertThat(over).succeedsWithin(Duration.ofSeconds(20));
  }

  /** A thread that is interrupted while others' work runs goes, and the rest goes on. */
  @Test
  void anInterruptedThreadGoes() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Together<Integer, Integer> work =
        Together.of(
            items -> {
              begun.countDown();
              await(go);
              return items;
            });
    ExecutorService pool = Executors.newFixedThreadPool(3);
    try {
      Future<Integer> first = pool.submit(() -> work.call(1));
      begun.await();
      CompletableFuture<Throwable> error = new CompletableFuture<>();
      Thread waits =
          new Thread(
              () -> {
                Thread.currentThread().interrupt();
                try {
                  work.call(2);
                } catch (CancellationException cancelled) {
                  error.complete(Thread.currentThread().isInterrupted() ? cancelled : null);
                }
              });
      waits.start();
      assertThat(error.get()).isInstanceOf(CancellationException.class);
      Future<Integer> third = pool.submit(() -> work.call(3));
      go.countDown();
      assertThat(first.get()).isEqualTo(1);
      assertThat(third.get()).isEqualTo(3);
    } finally {
      pool.shutdownNow();
    }
  }

  /** Random requests in threads, of two tenants: each gets what the model says. */
  @ParameterizedTest
  @ValueSource(longs = {0, 1, 2, 3})
  void threadsGetWhatTheModelSays(long seed) throws Exception {
    Together<Integer, Object> work =
        Together.<Integer, Object>of(
                items -> {
                  Lineage begun = Antipode.current();
                  assertThat(begun.writes().stream().filter(each -> !each.datastore().equals("x")))
                      .containsExactlyInAnyOrderElementsOf(
                          items.stream().map(TogetherTest::post).toList());
                  assertThat(items.stream().map(each -> each % 2).distinct()).hasSize(1);
                  Barriers.barrier(BARRIER.withExclude("posts"));
                  Recording.recordRead(READ);
                  return items.stream()
                      .map(each -> each % 5 == 0 ? new IllegalStateException("" + each) : each)
                      .toList();
                })
            .keyed(item -> item % 2);
    Random random = new Random(seed);
    ExecutorService pool = Executors.newFixedThreadPool(8);
    try {
      List<Future<?>> requests = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        int number = i;
        boolean bad = random.nextInt(7) == 0;
        requests.add(pool.submit(() -> request(work, number, bad)));
      }
      for (Future<?> each : requests) {
        each.get();
      }
    } finally {
      pool.shutdownNow();
    }
  }

  private static void request(Together<Integer, Object> work, int number, boolean bad) {
    Lineage start = Lineage.of(post(number));
    start = bad ? start.append(WriteId.of("x", "k" + number, 1).writtenAt(498_669)) : start;
    try (ScopeBlock block = Antipode.scope(start)) {
      if (bad) {
        assertThatThrownBy(() -> work.call(number)).isInstanceOf(UnknownDatastoreException.class);
        assertThat(Antipode.current()).isEqualTo(start);
        return;
      }
      if (number % 5 == 0) {
        assertThatThrownBy(() -> work.call(number)).hasMessage("" + number);
      } else {
        assertThat(work.call(number)).isEqualTo(number);
      }
      assertThat(Antipode.current()).isEqualTo(start.merge(READ));
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
