package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import java.time.Duration;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Polls for what one read may have missed, as a barrier does, once that read is over. A poll that
 * began after a read and does not show its dependency proves that the read did not show it either.
 * For dry runs; thread-safe.
 */
public final class StalenessCheck {
  /** How long after a read its dependencies are polled. */
  public static final Duration BOUND = Duration.ofSeconds(10);

  private static final Set<Status> SHOWN = EnumSet.of(Status.VISIBLE, Status.SUPERSEDED);
  private static final Set<Status> ABSENT = EnumSet.of(Status.NOT_YET, Status.LOST);

  /** Learns, once, what became of the read's dependencies. */
  public interface Found {
    /**
     * Takes it in; neither throws nor waits.
     *
     * @param check which read's
     * @param isConfirmed whether the read cannot have shown one of them
     * @param waited from the read until all of them were visible; null where they were not in time
     */
    void found(StalenessCheck check, boolean isConfirmed, @Nullable Duration waited);
  }

  private final String datastore;
  private final Watcher watcher;
  private final long readAt;
  private final Found found;
  private final Subscriber subscriber = new Looks();
  private final CountDownLatch looked = new CountDownLatch(1);
  private Set<Dependency> left;
  private boolean isConfirmed;
  private boolean isOver;

  private StalenessCheck(Shim client, Watcher watcher, Set<Dependency> missed, Found found) {
    this.datastore = client.datastore();
    this.watcher = watcher;
    this.readAt = watcher.clock().nanoTime();
    this.found = found;
    this.left = missed;
  }

  /**
   * Returns a check of a read that is about to be made; null where nobody can poll for it.
   *
   * @param client who reads
   * @param missed what the read may not show
   * @param found learns what became of it
   */
  public static @Nullable StalenessCheck of(
      Shim client, Collection<Dependency> missed, Found found) {
    Watcher watcher = Shims.sharedWatcher(client);
    Set<Dependency> wanted = new HashSet<>(missed);
    if (!client.pollsForPromises()) {
      wanted.removeIf(Promise.class::isInstance);
    }
    return watcher == null || wanted.isEmpty()
        ? null
        : new StalenessCheck(client, watcher, wanted, found);
  }

  /** Returns the datastore of the read. */
  public String datastore() {
    return datastore;
  }

  /** Polls from now on, in a thread of the library: the read is over. */
  public void begin() {
    watcher.subscribeUntil(subscriber, readAt + BOUND.toNanos());
  }

  /** Gives up, with what is known. */
  public void stop() {
    end(null);
    watcher.unsubscribe(subscriber);
  }

  /** Returns whether there is nothing to find out any more. */
  public boolean isLate() {
    return sinceRead().compareTo(BOUND) > 0;
  }

  /** Waits until it polled once or is over, but no longer than so long. */
  public void awaitPoll(Duration timeout) throws InterruptedException {
    boolean unused = looked.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
  }

  private Duration sinceRead() {
    return Duration.ofNanos(watcher.clock().nanoTime() - readAt);
  }

  private void end(@Nullable Duration waited) {
    boolean confirmed;
    synchronized (this) {
      if (isOver) {
        return;
      }
      isOver = true;
      confirmed = isConfirmed;
    }
    found.found(this, confirmed, waited);
    looked.countDown();
  }

  /** What the watcher reports. */
  private final class Looks implements Subscriber {
    @Override
    public Set<Dependency> wanted(String datastore) {
      if (isLate()) {
        end(null);
      }
      synchronized (StalenessCheck.this) {
        return isOver ? Set.of() : left;
      }
    }

    @Override
    public void take(String datastore, Observation observation) {
      Set<Dependency> unseen = new HashSet<>();
      boolean isPending = true;
      synchronized (StalenessCheck.this) {
        boolean isAbsent = false;
        for (Dependency each : left) {
          Status status = observation.status(each);
          isAbsent |= ABSENT.contains(status);
          if (!SHOWN.contains(status)) {
            unseen.add(each);
            isPending &= status.isPending();
          }
        }
        if (looked.getCount() > 0) { // Only the first says what the read can have shown.
          isConfirmed = isAbsent;
        }
        left = Set.copyOf(unseen);
      }
      if (unseen.isEmpty()) {
        end(sinceRead());
      } else if (!isPending) {
        end(null);
      }
      looked.countDown();
    }

    @Override
    public void unreachable(String datastore, String cause) {
      // The next poll may not fail.
    }

    @Override
    public void failed(String datastore, String cause) {
      end(null);
    }
  }
}
