package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.ConfigurationException;
import io.antipode.ReadBarriers;
import io.antipode.lineage.Promise;
import io.antipode.runtime.Counts;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.logging.Level;

/**
 * Barriers wait until a lineage is visible where the caller is about to read.
 *
 * <pre>{@code
 * Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(2)));
 * }</pre>
 *
 * <p>All datastores are waited for at once, under one deadline. A barrier ends with an exact
 * outcome for each dependency: it neither hangs nor passes silently.
 */
public final class Barriers {
  /** By which a client may be late before it is left alone. */
  private static final Duration GRACE = Duration.ofMillis(250);

  private Barriers() {}

  /**
   * Blocks until all is visible.
   *
   * @throws UnmetException if it is not: {@link BarrierTimeoutException}, {@link
   *     DependencyLostException}, {@link UnknownDatastoreException}, {@link
   *     VisibilityCheckException} or {@link IncompleteLineageException}
   * @throws ConfigurationException if two replicas have one name, or one store has two; if there is
   *     no scope to leave a floor in; if there is neither a scope nor a lineage
   * @throws io.antipode.lineage.LineageDecodeException if the text is no lineage
   * @throws CancellationException if the thread is interrupted, which it stays
   */
  public static BarrierResult barrier(BarrierOptions options) {
    return Measured.call("barrier", () -> run(new Call(options, false), false));
  }

  /**
   * Blocks as {@link #barrier} does, for a router. That it goes another way is no failure, and it
   * goes there at once where no server is.
   */
  static BarrierResult route(BarrierOptions options) {
    return Measured.call("route", () -> run(new Call(options, false), false, true));
  }

  /**
   * Returns what will be the result, or the error of {@link #barrier}. No thread waits for it.
   * Cancelled, it leaves nothing. What depends on it runs in the common pool, unless it names an
   * executor.
   *
   * @throws AntipodeException as {@link #barrier}, where it cannot begin
   */
  public static CompletableFuture<BarrierResult> barrierAsync(BarrierOptions options) {
    return Measured.future("barrier", () -> FutureCall.start(new Call(options, false), false));
  }

  /**
   * Calls back with the result, met or unmet, exactly once unless cancelled, in the common pool.
   * What the callback throws is logged.
   *
   * @return what cancels it
   * @throws AntipodeException as {@link #barrier}, where it cannot begin
   */
  public static Future<BarrierResult> barrierCallback(
      Consumer<BarrierResult> callback, BarrierOptions options) {
    Objects.requireNonNull(callback, "callback");
    BarrierOptions returning = options.returningUnmet();
    CompletableFuture<BarrierResult> result = barrierAsync(returning);
    CompletableFuture<BarrierResult> unused =
        result.whenComplete(
            (value, error) -> {
              if (error == null) {
                returning.clock().execute(() -> call(callback, value));
              } else if (!result.isCancelled()) {
                Counts.LOG.log(Level.WARNING, error, () -> "a barrier with a callback failed");
              }
            });
    return result;
  }

  private static void call(Consumer<BarrierResult> callback, BarrierResult result) {
    try {
      callback.accept(result);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, error, () -> "the callback of a barrier failed");
    }
  }

  /**
   * Polls without waiting, and never throws for what is unmet: for a consumer that would rather
   * have a message again later. A server that does not answer is unreachable after one second.
   *
   * @param options {@link BarrierOptions#check}, with what to ask for
   * @throws ConfigurationException as {@link #barrier}
   * @throws io.antipode.lineage.LineageDecodeException if the text is no lineage
   */
  public static BarrierResult check(BarrierOptions options) {
    return Measured.call(
        "check",
        () -> {
          Call call = new Call(options.returningUnmet(), true);
          return options.refreshes() ? run(call, true) : recalled(call);
        });
  }

  /** Returns what will be the result of {@link #check}. */
  public static CompletableFuture<BarrierResult> checkAsync(BarrierOptions options) {
    return Measured.future(
        "check",
        () -> {
          Call call = new Call(options.returningUnmet(), true);
          return options.refreshes()
              ? FutureCall.start(call, true)
              : CompletableFuture.completedFuture(recalled(call));
        });
  }

  private static BarrierResult recalled(Call call) {
    new Waiter(call.await(), () -> {}, call.clock(), false).recall();
    return call.conclude();
  }

  private static BarrierResult run(Call call, boolean once) {
    return run(call, once, false);
  }

  private static BarrierResult run(Call call, boolean once, boolean isHasty) {
    try {
      Comparison comparison = call.comparison();
      if (comparison != null) {
        await(call, comparison.await(), true, isHasty);
        call.compared(comparison);
      }
      Fences fences = call.askFences();
      if (!fences.isEmpty()) {
        await(fences, call.fenceTimeout());
        call.raiseFences(fences);
      }
      await(call, call.await(), once, isHasty);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      CancellationException cancelled = new CancellationException("interrupted in a barrier");
      cancelled.initCause(error);
      throw cancelled;
    }
    return call.conclude();
  }

  private static void await(Fences fences, Duration timeout) throws InterruptedException {
    try {
      fences.all().get(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException | TimeoutException error) {
      Counts.LOG.log(Level.FINE, error, () -> "not all primaries reported their positions");
    }
  }

  /** Waits until it is finished, or its deadline, which a poll from this thread may come near. */
  private static void await(Call call, Wait wait, boolean once, boolean isHasty)
      throws InterruptedException {
    CountDownLatch finished = new CountDownLatch(1);
    Waiter waiter = new Waiter(wait, finished::countDown, call.clock(), once, isHasty);
    waiter.recall();
    if (waiter.isFinished() || (waiter.lookHere() && waiter.isFinished())) {
      return;
    }
    try {
      waiter.subscribe();
      boolean ignored = finished.await(waiter.left().toNanos(), TimeUnit.NANOSECONDS);
    } finally {
      waiter.cancel();
    }
  }

  /**
   * Returns where the next read of a datastore goes, for a router of reads. A request that depends
   * on nothing there reads at the replica. Otherwise this waits, within the time that the reads of
   * the request have ({@code auto_timeout}), until the replica shows what the request depends on.
   * Where it does not, or the request has written in a transaction that is open, it is the
   * primary's turn, and that is counted ({@code reads_at_primary}). A request that was sent to the
   * primary is sent there until it ends; one that goes on for more than 30 s goes back once the
   * replica shows what the primary has by then. In a dry run nothing waits, and reads go to the
   * replica.
   *
   * @param datastore whose primary and one replica this process has instrumented
   * @throws ConfigurationException if it has no primary of it, or several replicas
   */
  public static ReadsFrom readsFrom(String datastore) {
    return Routing.readsFrom(datastore);
  }

  /**
   * Opens a block in which reads of instrumented clients wait automatically for what their request
   * depends on, whatever is configured. Threads that share its context are in it.
   */
  @SuppressWarnings("MustBeClosedChecker") // By who opens the block.
  public static Scope auto() {
    return Automatic.storeIn(Context.current(), ReadBarriers.AUTO).makeCurrent();
  }

  /**
   * Opens a block in which reads do not wait automatically, whatever is configured. Explicit
   * barriers in it are as they are.
   *
   * <pre>{@code
   * try (Scope block = Barriers.explicit()) {
   *   ...
   * }
   * }</pre>
   */
  @SuppressWarnings("MustBeClosedChecker") // By who opens the block.
  public static Scope explicit() {
    return Automatic.storeIn(Context.current(), ReadBarriers.EXPLICIT).makeCurrent();
  }

  /**
   * Gives a promise up for good: who waits for it learns at once that it is abandoned, and a later
   * fulfilment fails. What was fulfilled before stays so.
   *
   * @param timeout that the store may take
   * @return whether it is abandoned now; false where it was fulfilled before
   * @throws ConfigurationException if nothing is registered that can record it
   * @throws UnreachableException if the store does not answer; it may be recorded all the same
   */
  public static boolean abandon(Promise promise, Duration timeout) {
    CompletableFuture<Boolean> answer = abandonAsync(promise, timeout);
    Duration most = timeout.plus(GRACE);
    try {
      return answer.get(most.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException error) {
      throw new UnreachableException(promise + " may not be abandoned: no answer in time", error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new UnreachableException(promise + " may not be abandoned: interrupted", error);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof AntipodeException ours) {
        throw ours;
      }
      throw new UnreachableException(
          promise + " may not be abandoned: " + error.getCause(), error.getCause());
    }
  }

  /** Returns what will be the answer of {@link #abandon}. */
  public static CompletableFuture<Boolean> abandonAsync(Promise promise, Duration timeout) {
    Shim shim =
        Shims.of(promise.datastore()).stream()
            .filter(Shim::canAbandon)
            .findFirst()
            .orElseThrow(
                () ->
                    new ConfigurationException(
                        "nothing is registered for "
                            + promise.datastore()
                            + " that can record that a promise was abandoned: register a shim of"
                            + " its primary"));
    CompletableFuture<Boolean> answer = new CompletableFuture<>();
    // A client may take longer than it is allowed, to resolve a name, say: it is left alone then.
    Thread thread =
        new Thread(
            () -> {
              try {
                boolean isAbandoned = shim.abandon(promise, timeout);
                Counts.count(
                    isAbandoned ? "promise_abandoned" : "promise_fulfilled_first",
                    promise.datastore());
                answer.complete(isAbandoned);
              } catch (Throwable error) {
                answer.completeExceptionally(error);
              }
            },
            "antipode-abandon-" + promise.datastore());
    thread.setDaemon(true);
    thread.start();
    return answer;
  }
}
