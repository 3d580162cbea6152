package io.antipode.dryrun;

import io.antipode.barrier.StalenessCheck;
import io.antipode.runtime.Counts;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Observes reads that no barrier guards, a few at a time; what is beyond is dropped and counted.
 * That a read is over is known from what its thread does next. Thread-safe.
 */
final class Evidence {
  /** Reads that are observed at a time. */
  private static final int MOST = 8;

  /** Reads of which it is not known yet that they are over. */
  private static final int MOST_OPEN = 64;

  /** Reads of one finding that are all observed; of more, one in so long. */
  private static final int EAGER = 100;

  private static final Duration EVERY = Duration.ofMillis(100);
  private static final int MOST_FINDINGS = 10_000;

  /** A read that may still be under way. */
  private record Open(WeakReference<Thread> reader, StalenessCheck check) {
    boolean isOver() {
      Thread thread = reader.get();
      return thread == null || thread == Thread.currentThread() || !thread.isAlive();
    }
  }

  /** How many reads of a finding were observed, and when the last one was. */
  private record Looked(int reads, long last) {}

  private final Map<Object, Looked> looked = new HashMap<>();
  private final Set<StalenessCheck> running = new HashSet<>();
  private volatile List<Open> open = List.of();
  private boolean isClosed;

  /** Returns whether one more read of a finding shall be observed; counts it where not. */
  boolean wants(Object finding, String datastore) {
    boolean isWanted;
    synchronized (this) {
      long now = System.nanoTime();
      Looked before = looked.getOrDefault(finding, new Looked(0, now));
      isWanted = before.reads < EAGER || now - before.last >= EVERY.toNanos();
      if (isWanted) {
        if (looked.size() >= MOST_FINDINGS) {
          looked.clear();
        }
        looked.put(finding, new Looked(before.reads + 1, now));
      }
    }
    if (!isWanted) {
      dropped(datastore);
    }
    return isWanted;
  }

  private static void dropped(String datastore) {
    Counts.count("dry_run_evidence_dropped", datastore);
  }

  /** Observes a read of this thread, once that is over. */
  void seek(StalenessCheck check) {
    boolean hasRoom;
    synchronized (this) {
      hasRoom = open.size() < MOST_OPEN && !isClosed;
      if (hasRoom) {
        List<Open> more = new ArrayList<>(open);
        more.add(new Open(new WeakReference<>(Thread.currentThread()), check));
        open = List.copyOf(more);
      }
    }
    if (!hasRoom) {
      dropped(check.datastore());
    }
  }

  /** This thread goes on: its reads are over, as are those of threads that ended. */
  void over() {
    if (open.isEmpty()) {
      return;
    }
    List<StalenessCheck> begun = new ArrayList<>();
    List<StalenessCheck> dropped = new ArrayList<>();
    synchronized (this) {
      List<Open> left = new ArrayList<>();
      for (Open each : open) {
        boolean isOver = each.isOver();
        if (isOver && running.size() < MOST) {
          running.add(each.check);
          begun.add(each.check);
        } else if (isOver || each.check.isLate()) {
          dropped.add(each.check);
        } else {
          left.add(each);
        }
      }
      open = List.copyOf(left);
    }
    begun.forEach(StalenessCheck::begin);
    dropped.forEach(each -> dropped(each.datastore()));
  }

  /** A check has ended. */
  synchronized void ended(StalenessCheck check) {
    running.remove(check);
  }

  /** Waits until each read that is over was observed once, but no longer than so long. */
  void settle(Duration timeout) throws InterruptedException {
    over();
    List<StalenessCheck> begun;
    synchronized (this) {
      begun = List.copyOf(running);
    }
    long deadline = System.nanoTime() + timeout.toNanos();
    for (StalenessCheck each : begun) {
      each.awaitPoll(Duration.ofNanos(deadline - System.nanoTime()));
    }
  }

  /** Observes nothing any more; what is known by now is found. */
  void close() {
    List<StalenessCheck> begun;
    synchronized (this) {
      isClosed = true;
      open = List.of();
      begun = List.copyOf(running);
    }
    begun.forEach(StalenessCheck::stop);
  }
}
