package io.antipode.messages;

import io.antipode.barrier.Status;
import io.antipode.barrier.Wake;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Receipts: which publications were routed in this region, as one process saw it. One is visible
 * when it and all before it of the same publisher were seen here. What this process cannot have
 * seen, because it did not listen yet or no longer remembers, it says so. Without I/O; thread-safe,
 * bounded.
 */
public final class Ledger {
  /** Publishers remembered; over it the one heard first is forgotten. */
  private static final int MOST_PUBLISHERS = 4_096;

  /** Publications remembered ahead of a gap, for each publisher. */
  private static final int MOST_AHEAD = 1_024;

  /** Publications whose first question, and deliveries, are remembered. */
  private static final int MOST_ASKED = 4_096;

  /** Promises remembered that were fulfilled. */
  private static final int MOST_FULFILLED = 65_536;

  /** By how much the clocks of publishers and readers may differ. */
  private static final Duration SKEW = Duration.ofSeconds(5);

  /** For how long after its expiry a promise may still be fulfilled, as barriers have it. */
  private static final Duration PROMISE_GRACE = Duration.ofHours(1);

  private static final String NO_NUMBER = "not a publication with a number: forged, or not ours";
  private static final String GAP =
      "an earlier publication of this publisher never arrived here though later ones did: it was"
          + " published before this process listened, refused, or lost";
  private static final String AWAY =
      "it may have passed while the connection of the receipts was down";
  private static final String MISSED =
      "what fulfils it may have passed before this process listened, or was forgotten since";
  private static final String STRANGER =
      "its publisher began before this process listened, or was forgotten since";

  private final long gapAge;
  private final LongSupplier nanoTime;
  private final InstantSource wall;
  private final Map<String, Publisher> publishers = new LinkedHashMap<>();
  private final Map<Name, Long> delivered = new LinkedHashMap<>();
  private final Map<Name, Long> asked = new LinkedHashMap<>();
  private final Map<String, Boolean> fulfilled = new LinkedHashMap<>();
  private final List<Wake> wakes = new CopyOnWriteArrayList<>();
  private Instant remembersFrom;
  private int epoch;
  private long changes;

  private record Name(String publisher, long version) {
    static Name of(WriteId write) {
      return new Name(write.key(), write.version());
    }
  }

  /** What is said of a dependency, and why, for people. */
  public record Said(Status status, String cause) {}

  /** One publisher: all up to {@code prefix} were seen, and those ahead of a gap. */
  private static final class Publisher {
    long prefix;
    int epoch;
    long gapSince;
    boolean isBroken;
    final Set<Long> ahead = new TreeSet<>(Long::compareUnsigned);

    void see(long version, long now) {
      if (Long.compareUnsigned(version, prefix) <= 0 || ahead.contains(version)) {
        return;
      }
      if (version != prefix + 1) {
        seeAhead(version, now);
        return;
      }
      if (isBroken) {
        return;
      }
      prefix = version;
      while (ahead.remove(prefix + 1)) {
        prefix++;
      }
      if (!ahead.isEmpty()) {
        gapSince = now;
      }
    }

    private void seeAhead(long version, long now) {
      if (ahead.isEmpty()) {
        gapSince = now;
      }
      ahead.add(version);
      if (ahead.size() > MOST_AHEAD) {
        isBroken = true;
        ahead.clear();
      }
    }
  }

  /**
   * Begins to listen now.
   *
   * @param gapAge after which a publication that may have been missed counts as missed
   * @param nanoTime the clock of ages
   * @param wall the clock that creation times are compared with
   */
  public Ledger(Duration gapAge, LongSupplier nanoTime, InstantSource wall) {
    this.gapAge = gapAge.toNanos();
    this.nanoTime = nanoTime;
    this.wall = wall;
    this.remembersFrom = wall.instant();
  }

  // What is heard.

  /** Notes that listening began, again: what passed before may have been missed. */
  public void listening() {
    synchronized (this) {
      epoch++;
      remembersFrom = later(remembersFrom, wall.instant());
    }
    wakeUp();
  }

  /** Notes that a write was routed in this region. */
  public void see(WriteId write) {
    if (write.opaqueVersion() != null) {
      return;
    }
    synchronized (this) {
      Publisher publisher = publishers.get(write.key());
      if (publisher == null) {
        publisher = new Publisher();
        publishers.put(write.key(), publisher);
        if (publishers.size() > MOST_PUBLISHERS) {
          forgetFirst();
        }
      }
      publisher.see(write.version(), nanoTime.getAsLong());
      publisher.epoch = epoch;
    }
    wakeUp();
  }

  /** Forgets the publisher that was heard first, and notes what may be forgotten now. */
  private void forgetFirst() {
    String first = forget(publishers);
    @Nullable Long bornMs = Publications.bornMs(first);
    Instant now = wall.instant();
    if (bornMs != null) {
      Instant born = Instant.ofEpochMilli(bornMs);
      remembersFrom = later(remembersFrom, born.isBefore(now) ? born : now);
    }
  }

  private static <K> K forget(Map<K, ?> held) {
    Iterator<K> keys = held.keySet().iterator();
    K first = keys.next();
    keys.remove();
    return first;
  }

  private static Instant later(Instant one, Instant other) {
    return one.isAfter(other) ? one : other;
  }

  /**
   * Notes that this process received a write: visible here as such.
   *
   * @param after the latest publication of the same publisher on which it depends, or 0; that one
   *     is visible only by what was seen
   */
  public void deliver(WriteId write, long after) {
    if (write.opaqueVersion() != null) {
      return;
    }
    synchronized (this) {
      delivered.put(Name.of(write), after);
      if (delivered.size() > MOST_ASKED) {
        Name ignored = forget(delivered);
      }
    }
    see(write);
  }

  /** Notes that a message was routed, or received, that fulfils a promise. */
  public void fulfil(Promise promise) {
    synchronized (this) {
      fulfilled.put(promise.id(), true);
      if (fulfilled.size() > MOST_FULFILLED) {
        String ignored = forget(fulfilled);
      }
    }
    wakeUp();
  }

  // What that says.

  /** Returns what is known of a publication. */
  public synchronized Said judge(WriteId write) {
    if (write.opaqueVersion() != null) {
      return new Said(Status.UNDECIDABLE, NO_NUMBER);
    }
    Name name = Name.of(write);
    Publisher publisher = publishers.get(write.key());
    long prefix = publisher == null ? 0 : publisher.prefix;
    Long after = delivered.get(name);
    if (Long.compareUnsigned(write.version(), prefix) <= 0
        || (after != null && Long.compareUnsigned(prefix, after) >= 0)) {
      asked.remove(name);
      return new Said(Status.VISIBLE, "");
    }
    long now = nanoTime.getAsLong();
    boolean isPatient = now - firstAsked(name, now) < gapAge;
    if (publisher == null) {
      return judgeStranger(write, isPatient);
    }
    if (publisher.isBroken || (!publisher.ahead.isEmpty() && now - publisher.gapSince >= gapAge)) {
      return new Said(Status.UNDECIDABLE, GAP);
    }
    return publisher.epoch != epoch && !isPatient
        ? new Said(Status.UNDECIDABLE, AWAY)
        : new Said(Status.NOT_YET, "");
  }

  private long firstAsked(Name name, long now) {
    Long first = asked.putIfAbsent(name, now);
    if (asked.size() > MOST_ASKED) {
      Name ignored = forget(asked);
    }
    return first == null ? now : first;
  }

  private Said judgeStranger(WriteId write, boolean isPatient) {
    @Nullable Long bornMs = Publications.bornMs(write.key());
    if (bornMs == null) {
      return new Said(Status.UNKNOWN_LOG, STRANGER);
    }
    Instant born = Instant.ofEpochMilli(bornMs);
    if (born.isAfter(remembersFrom.plus(SKEW))) {
      return new Said(Status.NOT_YET, "");
    }
    // It published for a minute at the most: what it sent is either old, or may be on its way.
    Instant end = born.plus(Publications.ROLL).plus(SKEW).plusNanos(gapAge);
    return !isPatient || wall.instant().isAfter(end)
        ? new Said(Status.UNKNOWN_LOG, STRANGER)
        : new Said(Status.NOT_YET, "");
  }

  /**
   * Returns what is known of a promise. That nothing was seen is no proof that nothing was sent:
   * past its expiry it is not abandoned, but undecidable.
   */
  public synchronized Said judge(Promise promise) {
    if (fulfilled.containsKey(promise.id())) {
      return new Said(Status.VISIBLE, "");
    }
    Instant end = Instant.ofEpochSecond(promise.expiresS()).plus(PROMISE_GRACE);
    return end.isBefore(wall.instant())
        ? new Said(Status.UNDECIDABLE, MISSED)
        : new Said(Status.NOT_YET, "");
  }

  // Who waits.

  /** Returns how often something changed. */
  synchronized long changes() {
    return changes;
  }

  void subscribe(Wake wake) {
    wakes.add(wake);
  }

  void unsubscribe(Wake wake) {
    wakes.remove(wake);
  }

  /** Makes whoever waits poll again. */
  public void wakeUp() {
    synchronized (this) {
      changes++;
    }
    wakes.forEach(Wake::set);
  }
}
