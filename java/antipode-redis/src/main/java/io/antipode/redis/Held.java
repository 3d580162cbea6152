package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.Shim;
import io.antipode.barrier.UnreachableException;
import java.time.Duration;
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

  /**
   * How long it waits on the library's own connection before it asks on the application's, which
   * may lead to another server, and which others use.
   */
  private static final Duration WATCHED = Duration.ofSeconds(1);

  private final Shim shim;
  private final Floor floor;
  private final @Nullable Places places;
  private final Function<Floor, CompletableFuture<Observation>> look;
  private final ScheduledExecutorService timer;
  private Consumer<@Nullable Throwable> end = error -> {};

  Held(
      Shim shim,
      Floor floor,
      @Nullable Places places,
      Function<Floor, CompletableFuture<Observation>> look,
      ScheduledExecutorService timer) {
    this.shim = shim;
    this.floor = floor;
    this.places = places;
    this.look = look;
    this.timer = timer;
  }

  /** Polls, and calls back: with null where the command may be sent now, else with the error. */
  void start(Consumer<@Nullable Throwable> then) {
    end = then;
    if (floor.isOver()) {
      end.accept(null);
    } else {
      look(floor.hold(shim, places));
    }
  }

  private void look(HeldRead held) {
    CompletableFuture<Observation> shown;
    try {
      shown = look.apply(floor);
    } catch (RuntimeException error) {
      shown = CompletableFuture.failedFuture(error);
    }
    Object unused =
        shown
            .orTimeout(held.pollTimeout().toNanos(), TimeUnit.NANOSECONDS)
            .whenComplete((observation, error) -> take(held, observation, error));
  }

  private void take(HeldRead held, @Nullable Observation observation, @Nullable Throwable error) {
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
      end.accept(null);
    } else {
      Duration rest = held.isWatched() ? watched(held.left()) : pause;
      pause(held, System.nanoTime() + rest.toNanos());
    }
  }

  private static Duration watched(Duration left) {
    return left.compareTo(WATCHED) < 0 ? left : WATCHED;
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

  private void pause(HeldRead held, long until) {
    long left = until - System.nanoTime();
    if (left <= 0 || held.isHinted()) {
      look(held);
      return;
    }
    long part = held.isWatched() ? Math.min(left, HINT_NS) : left;
    Future<?> unused = timer.schedule(() -> pause(held, until), part, TimeUnit.NANOSECONDS);
  }
}
