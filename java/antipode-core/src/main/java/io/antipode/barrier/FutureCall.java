package io.antipode.barrier;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A call whose result comes later: no thread waits for it. */
final class FutureCall {
  private final Call call;
  private final Clock clock;
  private final boolean once;
  private final CompletableFuture<BarrierResult> result = new CompletableFuture<>();

  /** Ends what is waited for at present. */
  private volatile Runnable ending = () -> {};

  private FutureCall(Call call, boolean once) {
    this.call = call;
    this.clock = call.clock();
    this.once = once;
    CompletableFuture<BarrierResult> unused =
        result.whenComplete(
            (value, error) -> {
              if (result.isCancelled()) {
                ending.run();
              }
            });
  }

  /** Starts; once: one poll of each datastore is enough. */
  static CompletableFuture<BarrierResult> start(Call call, boolean once) {
    FutureCall future = new FutureCall(call, once);
    Comparison comparison = call.comparison();
    if (comparison == null) {
      future.fence();
    } else {
      future.await(
          comparison.await(),
          true,
          () -> {
            call.compared(comparison);
            future.fence();
          });
    }
    return future.result;
  }

  /** Asks primaries for their positions, and waits once they are there, or too late. */
  private void fence() {
    Fences fences = call.askFences();
    if (fences.isEmpty()) {
      await();
      return;
    }
    Step step =
        new Step(
            () -> {
              call.raiseFences(fences);
              await();
            },
            fences::cancel);
    CompletableFuture<Void> unused = fences.all().whenComplete((nothing, error) -> step.endSoon());
    step.endAfter(call.fenceTimeout());
  }

  private void await() {
    await(call.await(), once, () -> result.complete(call.conclude()));
  }

  private void await(Wait wait, boolean once, Runnable then) {
    Step step = new Step(then, () -> {});
    Waiter waiter = new Waiter(wait, step::endSoon, clock, once);
    step.cancel = waiter::cancel;
    waiter.recall();
    if (waiter.isFinished()) {
      step.end();
    } else {
      waiter.subscribe();
      step.endAfter(waiter.left());
    }
  }

  /** One thing that is waited for. It ends once, and the next one begins. */
  private final class Step {
    private final Runnable then;
    private final AtomicBoolean isOver = new AtomicBoolean();
    private volatile Runnable cancel;
    private volatile @Nullable Runnable timer;

    Step(Runnable then, Runnable cancel) {
      this.then = then;
      this.cancel = cancel;
      ending = this::end;
    }

    void endSoon() {
      clock.execute(this::end);
    }

    void endAfter(Duration timeout) {
      Runnable scheduled = clock.schedule(timeout, this::endSoon);
      timer = scheduled;
      if (isOver.get()) {
        scheduled.run();
      }
    }

    void end() {
      if (!isOver.compareAndSet(false, true)) {
        return;
      }
      Runnable scheduled = timer;
      if (scheduled != null) {
        scheduled.run();
      }
      cancel.run();
      if (result.isDone()) {
        return;
      }
      try {
        then.run();
      } catch (Throwable error) {
        result.completeExceptionally(error);
      }
    }
  }
}
