package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Shim;
import io.antipode.barrier.UnreachableException;
import java.time.Duration;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A command that is held back until a connection shows its floor; no thread waits for it. */
final class Held {
  /** How often it is seen whether a watcher ended the pause. */
  private static final long HINT_NS = 2_000_000;

  private final Shim shim;
  private final Iterator<Floor> stages;
  private final Function<Floor, CompletableFuture<Observation>> look;
  private final ScheduledExecutorService timer;
  private Consumer<@Nullable Throwable> end = error -> {};

  Held(
      Shim shim,
      Floor floor,
      Function<Floor, CompletableFuture<Observation>> look,
      ScheduledExecutorService timer) {
    this.shim = shim;
    this.stages = floor.stages().iterator();
    this.look = look;
    this.timer = timer;
  }

  /** Looks, and calls back: with null where the command may be sent now, else with the error. */
  void start(Consumer<@Nullable Throwable> then) {
    end = then;
    next();
  }

  private void next() {
    Floor stage = stages.hasNext() ? stages.next() : null;
    if (stage == null || stage.isServed()) {
      end.accept(null);
      return;
    }
    HeldRead held = stage.hold(shim);
    look(stage, held);
  }

  private void look(Floor stage, HeldRead held) {
    CompletableFuture<Observation> shown;
    try {
      shown = look.apply(stage);
    } catch (RuntimeException error) {
      shown = CompletableFuture.failedFuture(error);
    }
    Object unused =
        shown
            .orTimeout(held.lookTimeout().toNanos(), TimeUnit.NANOSECONDS)
            .whenComplete((observation, error) -> take(stage, held, observation, error));
  }

  private void take(
      Floor stage, HeldRead held, @Nullable Observation observation, @Nullable Throwable error) {
    Duration pause;
    try {
      if (observation == null) {
        held.failed(unreachable(error));
        return;
      }
      pause = held.take(observation);
    } catch (RuntimeException failed) {
      held.close();
      end.accept(failed);
      return;
    }
    if (pause == null) {
      held.close();
      next();
    } else {
      pause(stage, held, System.nanoTime() + pause.toNanos());
    }
  }

  private static UnreachableException unreachable(@Nullable Throwable error) {
    Throwable cause =
        error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    if (cause instanceof UnreachableException away) {
      return away;
    }
    String why = cause instanceof TimeoutException ? "no answer in time" : String.valueOf(cause);
    return new UnreachableException(why, cause);
  }

  private void pause(Floor stage, HeldRead held, long until) {
    long left = until - System.nanoTime();
    if (left <= 0 || held.isHinted()) {
      look(stage, held);
      return;
    }
    long part = held.isWatched() ? Math.min(left, HINT_NS) : left;
    Future<?> unused = timer.schedule(() -> pause(stage, held, until), part, TimeUnit.NANOSECONDS);
  }
}
