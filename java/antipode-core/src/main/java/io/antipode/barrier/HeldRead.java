package io.antipode.barrier;

import io.antipode.runtime.Measures;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One read that a floor holds back: when it polls, and how it ends. It itself neither polls nor
 * pauses. One demand at a time has its turn, the first that the last poll did not show: its time is
 * spent, and it paces.
 */
public final class HeldRead implements AutoCloseable {
  /**
   * How many times as long it pauses while a watcher polls for it: that one may poll another
   * server, which shows what is demanded later, or never.
   */
  private static final int RARELY = 8;

  private final Floor floor;
  private final @Nullable Watcher watcher;

  /** Of the pool whose connection it keeps while it waits; null for none that is known. */
  private final @Nullable Places places;

  private final Clock clock;
  private final Pacer pacer = new Pacer();
  private Demand demand;
  private Wait wait;
  private volatile @Nullable Hint hint;
  private boolean wasWatched;
  private boolean isPlaced;

  /** Whether somebody has given it up. */
  private final CountDownLatch ended = new CountDownLatch(1);

  HeldRead(Floor floor, @Nullable Watcher watcher, @Nullable Places places) {
    this.floor = floor;
    this.watcher = watcher;
    this.places = places;
    this.clock = floor.clock();
    this.demand = floor.demands().get(0);
    this.wait = floor.begin(demand);
    demand.allowance().begin(wait.started());
  }

  /** Returns for how long it may still be held. */
  public Duration left() {
    return Duration.ofNanos(Math.max(wait.deadline() - clock.nanoTime(), 0));
  }

  /** Returns how long the next poll may last. */
  public Duration pollTimeout() {
    long least = demand.leastLook().toNanos();
    return Duration.ofNanos(Math.max(wait.deadline() - clock.nanoTime(), least));
  }

  /**
   * Takes what a poll on the connection showed; returns the pause to the next one, or null where
   * the read may be answered.
   *
   * @throws UnmetException if the time is up, or waiting longer cannot help
   */
  public @Nullable Duration take(Observation observation) {
    for (Demand each : floor.demands()) {
      boolean hasTurn = each == demand;
      Wait judged = hasTurn ? wait : floor.begin(each);
      if (!floor.judge(each, judged, observation)) {
        if (!hasTurn) {
          end();
          demand = each;
          wait = judged;
          demand.allowance().begin(wait.started());
        }
        if (!hasPlace()) {
          floor.turnAway(observation);
          return null;
        }
        return pause();
      }
    }
    floor.pass();
    return null;
  }

  /** Returns whether it may keep its connection while it waits. */
  private boolean hasPlace() {
    if (places != null && !isPlaced) {
      isPlaced = places.take();
      return isPlaced;
    }
    return true;
  }

  private Duration pause() {
    long now = clock.nanoTime();
    long left = wait.deadline() - now;
    if (hint == null && watcher != null) {
      hint = new Hint(watcher, demand.wanted());
    }
    Duration pause = pacer.pause(now - wait.started());
    wasWatched = isWatched();
    if (wasWatched) {
      pause = pause.multipliedBy(RARELY);
    }
    return pause.toNanos() < left ? pause : Duration.ofNanos(Math.max(left, 0));
  }

  /** Returns whether a watcher may end the present pause. */
  public boolean isWatched() {
    Hint given = hint;
    return given != null && !given.isGiven();
  }

  /** Returns whether the watcher ended the present pause. */
  public boolean isHinted() {
    return wasWatched && !isWatched();
  }

  /**
   * Pauses this thread, until the time is over, the watcher says that a poll may show it all, or
   * {@link #giveUp} is called.
   */
  public void pause(Duration pause) throws InterruptedException {
    Hint given = hint;
    if (given != null && isWatched() && !isGivenUp()) {
      given.await(pause);
    } else {
      boolean unused = ended.await(pause.toNanos(), TimeUnit.NANOSECONDS);
    }
  }

  /** Ends the present pause and all later ones, for another thread that wants it to end. */
  public void giveUp() {
    ended.countDown();
    Hint given = hint;
    if (given != null) {
      given.wake();
    }
  }

  /** Returns whether it was given up: whoever holds it looks no more. */
  public boolean isGivenUp() {
    return ended.getCount() == 0;
  }

  /**
   * Ends it because a poll failed: where the time is up that is said, and not that the server was
   * away.
   *
   * @throws UnmetException if the time is up
   * @throws UnreachableException the given one, where there was time left
   */
  public void failed(UnreachableException error) {
    floor.failLate(demand, wait, error);
    throw error;
  }

  /** Spends the time of the demand that has its turn, and reports it to whoever measures waits. */
  @Override
  public void close() {
    end();
    if (isPlaced && places != null) {
      isPlaced = false;
      places.giveBack();
    }
  }

  private void end() {
    long now = clock.nanoTime();
    demand.allowance().end(now);
    if (!Measures.isIdle()) {
      Measured.waited(wait.result(now), "read");
    }
    Hint given = hint;
    if (given != null) {
      given.cancel();
      hint = null;
    }
  }
}
