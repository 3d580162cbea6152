package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;

/** A {@link Wait} that watchers feed. Thread-safe. */
final class Waiter implements Subscriber {
  private final Wait wait;
  private final Runnable notify;
  private final Clock clock;
  private final boolean once;
  private final boolean isHasty;
  private final Set<String> looked = new HashSet<>();
  private final Map<String, Watcher> watchers = new HashMap<>();
  private boolean isOver;

  /** Whether it polled in vain, from its own thread. */
  private boolean isPolled;

  /**
   * Connects a wait to the watchers.
   *
   * @param notify called once, from any thread, when it is finished
   * @param once whether one poll of each datastore is enough
   */
  Waiter(Wait wait, Runnable notify, Clock clock, boolean once) {
    this(wait, notify, clock, once, false);
  }

  /**
   * Connects a wait to the watchers.
   *
   * @param notify called once, from any thread, when it is finished
   * @param once whether one poll of each datastore is enough
   * @param isHasty whether it ends as soon as no server is there: who waits has another way to go
   */
  Waiter(Wait wait, Runnable notify, Clock clock, boolean once, boolean isHasty) {
    this.isHasty = isHasty;
    this.wait = wait;
    this.notify = notify;
    this.clock = clock;
    this.once = once;
    for (String datastore : wait.pending()) {
      Shim shim = Shims.looking(datastore);
      if (shim == null) {
        wait.failed(datastore, Watcher.CLOSED, wait.started());
      } else {
        watchers.put(datastore, shim.watcher());
      }
    }
  }

  /** Returns how long it is until the deadline of its wait. */
  Duration left() {
    return Duration.ofNanos(Math.max(wait.deadline() - clock.nanoTime(), 0));
  }

  synchronized boolean isFinished() {
    if (isHasty && wait.pending().stream().anyMatch(each -> watcher(each).isAbsent())) {
      return true;
    }
    if (once) { // Even if it cannot succeed any more: the caller asks what is visible.
      return looked.containsAll(wait.pending());
    }
    return wait.isFinished();
  }

  /** Settles what the watchers know already, without a round trip. */
  synchronized void recall() {
    watchers.forEach(
        (datastore, watcher) -> {
          if (!watcher.away().isEmpty()) {
            wait.unreachable(datastore, watcher.away(), clock.nanoTime());
          }
        });
    recall(watchers.keySet());
  }

  private void recall(Collection<String> datastores) {
    for (String datastore : datastores) {
      Observation known = watcher(datastore).recall(wait.asked(datastore));
      if (known != null) {
        wait.record(datastore, known, clock.nanoTime());
      }
    }
  }

  private Watcher watcher(String datastore) {
    Watcher found = watchers.get(datastore);
    if (found == null) {
      throw new IllegalStateException("no watcher of " + datastore);
    }
    return found;
  }

  /**
   * Polls from this thread, where there is one datastore and nobody polls it already: a barrier
   * that has nothing to wait for starts no thread. Returns false where the watcher has to do it,
   * which alone makes connections.
   */
  boolean lookHere() {
    Set<String> pending = wait.pending();
    if (pending.size() != 1) {
      return false;
    }
    String datastore = pending.iterator().next();
    Duration left = left();
    Observation observation;
    try {
      observation =
          watcher(datastore)
              .tryLook(
                  wait.asked(datastore), left.compareTo(Watcher.LOOK) < 0 ? left : Watcher.LOOK);
    } catch (UnreachableException error) {
      unreachable(datastore, Watcher.why(error));
      return true;
    } catch (Exception error) { // The watcher polls again, and knows what to retry.
      return false;
    }
    if (observation == null) {
      return false;
    }
    take(datastore, observation);
    isPolled = true;
    return true;
  }

  /** Starts to wait at the watchers of all that is pending. */
  void subscribe() {
    Set<String> pending;
    synchronized (this) {
      pending = wait.pending();
    }
    pending.forEach(datastore -> watcher(datastore).subscribe(this, isPolled));
  }

  /** Stops to wait: nothing is recorded any more. May be called again. */
  void cancel() {
    synchronized (this) {
      isOver = true;
    }
    watchers.values().forEach(watcher -> watcher.unsubscribe(this));
  }

  @Override
  public synchronized Set<Dependency> wanted(String datastore) {
    if (isOver || isFinished() || (once && looked.contains(datastore))) {
      return Set.of();
    }
    return wait.asked(datastore);
  }

  @Override
  public synchronized void waitedOn(long at) {
    if (!isOver) {
      wait.waitOn(at);
    }
  }

  @Override
  public void take(String datastore, Observation observation) {
    update(datastore, now -> wait.record(datastore, observation, now));
  }

  @Override
  public void unreachable(String datastore, String cause) {
    update(datastore, now -> wait.unreachable(datastore, cause, now));
  }

  @Override
  public void failed(String datastore, String cause) {
    update(datastore, now -> wait.failed(datastore, cause, now));
  }

  private void update(String datastore, LongConsumer record) {
    Set<String> doubted;
    boolean isFinished;
    synchronized (this) {
      if (isOver) {
        return;
      }
      Set<String> before = wait.pending();
      record.accept(clock.nanoTime());
      looked.add(datastore);
      doubted = new HashSet<>(wait.pending());
      doubted.removeAll(before);
      looked.removeAll(doubted);
      recall(doubted);
      doubted.retainAll(wait.pending());
      isFinished = isFinished();
      isOver = isFinished;
    }
    if (isFinished) {
      notify.run();
      return;
    }
    // Their watchers believe that nobody waits here any more.
    doubted.forEach(each -> watcher(each).subscribe(this, false));
  }
}
