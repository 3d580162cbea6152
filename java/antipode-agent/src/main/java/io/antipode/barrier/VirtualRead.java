package io.antipode.barrier;

import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A read on a virtual clock, held back by a floor where there is one. */
public final class VirtualRead implements Stepper {
  /**
   * How it is made.
   *
   * @param isWatched whether the watcher of the store polls for it while it is held back
   * @param snapshot what is known to show in the snapshot that it reads from; null for a new one
   * @param proof for how long its connection, which is pinned, need not poll for what its server
   *     has shown
   * @param isUnasked whether the client gives its connection up before anything was asked
   * @param isRefused whether its server refuses the read itself, once nothing holds it back
   */
  public record Options(
      boolean isWatched,
      @Nullable Set<WriteId> snapshot,
      Duration proof,
      boolean isUnasked,
      boolean isRefused) {}

  private final VirtualClock clock;
  private final FakeStore store;
  private final FakeStore connection;
  private final Options options;
  private final Wake wake = new Wake();
  private final StaleRead stale = new StaleRead();
  private @Nullable Floor floor;
  private @Nullable HeldRead held;
  private @Nullable Exception error;
  private long finished;
  private boolean isSilent;
  private boolean isServed;

  /**
   * Makes a read that is not started.
   *
   * @param store whose floor it satisfies
   * @param connection the server behind the connection that reads, for this read alone
   */
  public VirtualRead(VirtualClock clock, FakeStore store, FakeStore connection, Options options) {
    this.clock = clock;
    this.store = store;
    this.connection = connection;
    this.options = options;
  }

  /** Reads now. */
  public void start() {
    counting(this::begin);
  }

  private void begin() {
    try {
      floor = Floor.current(store, null, stale);
    } catch (UnmetException raised) {
      error = raised;
    }
    Floor demanded = floor;
    if (demanded == null || passes(demanded)) {
      finish();
    } else if (options.isUnasked()) {
      clock.at(clock.nanoTime() + demanded.pollTimeout().toNanos(), () -> giveUp(demanded));
    } else {
      held = new HeldRead(demanded, options.isWatched() ? Shims.sharedWatcher(store) : null, null);
      clock.spawn(this);
    }
  }

  /** Returns whether it is over without a poll. */
  private boolean passes(Floor demanded) {
    Set<WriteId> snapshot = options.snapshot();
    if (snapshot == null && !demanded.isProvedOn(connection.incarnation(), options.proof())) {
      return false;
    }
    Predicate<Floor> shows =
        each ->
            snapshot == null || (snapshot.containsAll(each.writes()) && each.promises().isEmpty());
    try {
      if (shows.test(demanded)) {
        demanded.pass();
      } else {
        demanded.failSnapshot(new StaleSnapshotException("scripted"), shows);
      }
    } catch (StaleSnapshotException raised) {
      error = raised;
    }
    return true;
  }

  /** Nothing was asked until the time was up. */
  private void giveUp(Floor demanded) {
    UnreachableException away = new UnreachableException("scripted to be unasked");
    error = away;
    try {
      demanded.expire(away);
    } catch (UnmetException raised) {
      error = raised;
    }
    finish();
  }

  /** The server answers the read, refuses it, or was never sent it. */
  private void finish() {
    finished = clock.nanoTime();
    if (error == null && options.isRefused()) {
      error = new UnreachableException("scripted to be refused");
    }
    if (error == null) {
      stale.answered();
    }
  }

  private void counting(Runnable step) {
    long before = served();
    step.run();
    isServed = isServed || served() > before;
  }

  private long served() {
    return Counts.all().getOrDefault(new Counts.Metric("served_stale", store.datastore()), 0L);
  }

  /** Returns whether it was counted as answered although it may be stale. */
  public boolean isServed() {
    return isServed;
  }

  /** Returns what it raised: unmet, or that its connection failed; null once it is answered. */
  public @Nullable Exception error() {
    return error;
  }

  /** Returns when it was over, in nanoseconds. */
  public long finished() {
    return finished;
  }

  /** Returns how often its connection was polled. */
  public int polls() {
    return connection.polls();
  }

  boolean isHinted() {
    return held != null && held.isHinted();
  }

  @Override
  public String name() {
    return "read-" + store.datastore();
  }

  @Override
  public Wake wake() {
    return wake;
  }

  @Override
  public @Nullable Duration step() {
    HeldRead read = held;
    Floor demanded = floor;
    if (read == null || demanded == null) {
      return null;
    }
    long before = served();
    Duration pause = step(read, demanded);
    isServed = isServed || served() > before;
    return pause;
  }

  private @Nullable Duration step(HeldRead read, Floor demanded) {
    try {
      Duration pause = look(read, demanded);
      if (pause != null) {
        return pause;
      }
    } catch (Exception raised) {
      error = raised;
    }
    read.close();
    finish();
    return null;
  }

  /** Returns the pause to the next poll; a frozen server takes all the time that there is. */
  private @Nullable Duration look(HeldRead read, Floor demanded) {
    Observation shown;
    try {
      if (isSilent) {
        throw new UnreachableException("scripted to be frozen");
      }
      connection.raiseIfDown();
      shown = connection.look(demanded.writes(), demanded.promises());
    } catch (UnreachableException failed) {
      read.failed(failed);
      return null;
    }
    if (connection.isFrozen()) {
      isSilent = true;
      return read.pollTimeout();
    }
    return read.take(shown);
  }

  @Override
  public void pause(Duration timeout) {
    throw new UnsupportedOperationException("the clock lets time pass");
  }
}
