package io.antipode.mysql;

import io.antipode.Dependency;
import io.antipode.Promise;
import io.antipode.WriteId;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What is known of the session of one connection: its transaction, its snapshot, what is in flight.
 *
 * <p>Without I/O: it is told of calls before they are made and of what the server says afterwards,
 * and decides whether a read may be made, whether the position of a write is missing, and whether a
 * lost connection leaves one in doubt. The server's flags decide; where they do not, a transaction
 * may be open, its snapshot may be old, and a statement may have written.
 */
final class Session {
  /** For how long what a look showed counts: a server that is reset in place tells nobody. */
  private static final Duration FRESH = Duration.ofSeconds(2);

  private static final int MOST_LOGS = 64;
  private static final int MOST_PROMISES = 256;

  /** Errors of a statement that was not executed: it does not parse, or names no table. */
  private static final Set<Integer> UNREAD = Set.of(1064, 1146);

  /** Errors of a definition that it meets behind its commit: a table is there, or is none. */
  private static final Set<Integer> BEHIND_COMMIT = Set.of(1050, 1051);

  private static final Set<String> COMMITTED_READS = Set.of("READ-COMMITTED", "READ-UNCOMMITTED");

  /** What to do with a read under a floor. */
  enum Verdict {
    PASS,
    HOLD,
    /** A snapshot is open that does not show the floor, unless reads see the last commits. */
    OLD_SNAPSHOT,
    /** The transaction wrote and read nothing: a trigger or a function may have taken one. */
    TRIGGERED
  }

  /** What the end of a call leaves to do. */
  enum Due {
    NOTHING,
    /** A position is missing. */
    SAMPLE,
    /** There will never be one. */
    UNCOVERED
  }

  /** How a call ended. */
  enum End {
    DONE,
    /** The server answered with an error. */
    REFUSED,
    /** The driver failed, and the connection lives: what the server did nobody knows. */
    FAILED
  }

  private enum Snapshot {
    NONE,
    PERHAPS,
    TAKEN
  }

  /** Positions, and promises, that were seen. */
  private record Seen(Map<String, Long> logs, Set<String> promises) {
    static final Seen NOTHING = new Seen(Map.of(), Set.of());

    boolean covers(Floor floor) {
      return floor.writes().stream().allMatch(this::has)
          && floor.promises().stream().map(Promise::id).allMatch(promises::contains);
    }

    private boolean has(WriteId write) {
      Long last = logs.get(write.key());
      return isInteger(write) && last != null && Long.compareUnsigned(last, write.version()) >= 0;
    }

    private static boolean isInteger(WriteId write) {
      return write.opaqueVersion() == null;
    }

    Seen and(Collection<WriteId> writes, Collection<Promise> fulfilled) {
      Map<String, Long> more = new HashMap<>(logs);
      for (WriteId write : writes) {
        if (isInteger(write)) {
          more.merge(write.key(), write.version(), Seen::later);
        }
      }
      Set<String> kept = new HashSet<>(promises);
      fulfilled.forEach(promise -> kept.add(promise.id()));
      return new Seen(
          more.size() <= MOST_LOGS ? more : Map.of(),
          kept.size() <= MOST_PROMISES ? kept : Set.of());
    }

    private static long later(long one, long other) {
      return Long.compareUnsigned(one, other) >= 0 ? one : other;
    }
  }

  private String server = "";
  private boolean isAutocommit;
  private boolean isInTransaction;
  private Snapshot snapshot;

  /** Whether the open transaction wrote. */
  private boolean wrote;

  private boolean isUnlogged;

  /** Whether the flags may be old: an error carries none. */
  private boolean isUnsure;

  private boolean isIsolationUnsure;
  private boolean isIsolatedOnce;
  private Seen known = Seen.NOTHING;
  private long knownNs;
  private @Nullable Floor passed;
  private Seen shown = Seen.NOTHING;
  private @Nullable Floor shownFloor;

  // Of the call in flight.
  private Set<Effect> flight = Set.of();
  private Snapshot before = Snapshot.NONE;
  private boolean isLooked;
  private boolean isAlone;
  private boolean commits;
  private boolean isCommitted;

  /** A session that may be in a transaction, of which nothing is known. */
  Session(boolean isAutocommit, boolean isInTransaction) {
    this.isAutocommit = isAutocommit;
    this.isInTransaction = isInTransaction;
    this.snapshot = isInTransaction ? Snapshot.TAKEN : Snapshot.NONE;
    this.wrote = isInTransaction;
  }

  /** Notes which server is behind the connection; what another one showed counts no more. */
  void reaches(String incarnation) {
    if (!incarnation.equals(server)) {
      server = incarnation;
      forget();
      showNothing();
    }
  }

  private void forget() {
    known = Seen.NOTHING;
    passed = null;
  }

  private void show() {
    shown = known;
    shownFloor = passed;
  }

  private void showNothing() {
    shown = Seen.NOTHING;
    shownFloor = null;
  }

  /** Returns whether each statement commits by itself now. */
  boolean isAutonomous() {
    return isAutocommit && !isInTransaction;
  }

  boolean isInTransaction() {
    return isInTransaction;
  }

  /** Returns whether the next statement may take the snapshot of a transaction. */
  boolean isFresh() {
    return snapshot == Snapshot.NONE && !isAutonomous();
  }

  /** Returns whether the isolation of a transaction may be another than the session's. */
  boolean isIsolatedOnce() {
    return isIsolatedOnce;
  }

  /** Returns whether the open transaction wrote. */
  boolean isUncommitted() {
    return wrote && !isAutonomous();
  }

  // Reads.

  /** Returns whether a statement that reads, or may take the snapshot, may be sent. */
  Verdict judge(Floor floor, Set<Effect> effects) {
    forgetOld();
    boolean renews = effects.contains(Effect.ENDS) && !effects.contains(Effect.SEVERAL);
    if (snapshot != Snapshot.NONE && !renews) {
      if (floor == shownFloor || shown.covers(floor)) {
        return Verdict.PASS;
      }
      return snapshot == Snapshot.TAKEN ? Verdict.OLD_SNAPSHOT : Verdict.TRIGGERED;
    }
    if (known.covers(floor)) {
      learn(floor, List.of(), List.of());
      return Verdict.PASS;
    }
    if (floor.isProvedOn(server, FRESH)) {
      learn(floor, floor.writes(), floor.promises());
      return Verdict.PASS;
    }
    return Verdict.HOLD;
  }

  /**
   * Notes that a floor was met on this connection.
   *
   * @param seen what the last look showed; null where there was none
   * @param renews whether reads of the open transaction see it
   */
  void passed(Floor floor, @Nullable Observation seen, boolean renews) {
    forgetOld();
    learn(
        floor,
        floor.writes().stream().filter(each -> isVisible(seen, each)).toList(),
        floor.promises().stream().filter(each -> isVisible(seen, each)).toList());
    if (renews || isLooked) {
      show();
      isLooked = false;
    }
  }

  private static boolean isVisible(@Nullable Observation seen, Dependency each) {
    return seen != null && seen.status(each) == Status.VISIBLE;
  }

  private void learn(Floor floor, Collection<WriteId> writes, Collection<Promise> promises) {
    if (passed == null) {
      knownNs = System.nanoTime(); // What is remembered is as old as the first of it.
    }
    passed = floor;
    known = known.and(writes, promises);
  }

  private void forgetOld() {
    if (System.nanoTime() - knownNs > FRESH.toNanos()) {
      forget();
    }
  }

  /** A look of the library's own opened the snapshot of the application's transaction. */
  void snapshotTaken() {
    snapshot = Snapshot.TAKEN;
    isLooked = true;
    showNothing();
  }

  /** Something that this class is not told of may have opened a snapshot. */
  void mayHaveRead() {
    if (isFresh()) {
      snapshot = Snapshot.TAKEN;
      showNothing();
    }
  }

  /** Returns whether reads of the open transaction see what was committed last. */
  boolean readsCommitted(String level) {
    if (!isInTransaction) {
      return true;
    }
    return !isIsolationUnsure
        && !isIsolatedOnce
        && COMMITTED_READS.contains(level.toUpperCase(Locale.ROOT).replace(' ', '-'));
  }

  // Calls.

  /** Notes that a call is about to be made. */
  void starts(Set<Effect> effects) {
    flight = effects;
    isLooked = false;
    before = snapshot;
    isAlone = isAutonomous() && !isUnsure;
    // A deadlock ends a transaction, other errors do not: behind one nobody knows.
    boolean mayBeAlone = isUnsure && isAutocommit;
    commits = effects.contains(Effect.COMMITS) || isAutonomous() || mayBeAlone;
    isCommitted = false;
    take(effects);
    if (effects.contains(Effect.ISOLATION)) {
      isIsolatedOnce |= effects.contains(Effect.NEXT_ONLY);
      isIsolationUnsure |= !isAutonomous();
    }
  }

  private static boolean takesSnapshot(Set<Effect> effects) {
    return effects.contains(Effect.READS)
        || effects.contains(Effect.SNAPSHOT)
        || effects.contains(Effect.MAY_SNAPSHOT);
  }

  private void take(Set<Effect> effects) {
    boolean takes = takesSnapshot(effects);
    boolean ends = effects.contains(Effect.ENDS);
    boolean anew = snapshot == Snapshot.NONE || ends;
    if (takes && !anew) {
      snapshot = Snapshot.TAKEN;
    } else if (takes || (anew && effects.contains(Effect.WRITES) && !ends)) {
      forgetOld();
      show();
      snapshot = takes ? Snapshot.TAKEN : Snapshot.PERHAPS;
    }
  }

  /** Notes that writes of this session were committed. */
  void committed() {
    isCommitted = true;
  }

  /** Returns whether what is in flight may commit a write, or leave it to others to commit. */
  boolean isDoubtful() {
    boolean writes = flight.contains(Effect.WRITES);
    if (flight.contains(Effect.TWO_PHASES) && wrote) {
      return true;
    }
    return commits && (writes || (wrote && flight.contains(Effect.COMMITS)));
  }

  /** Returns whether what is in flight leaves a write to others: its GTID is of no commit. */
  boolean isPreparing() {
    return flight.contains(Effect.TWO_PHASES) && !flight.contains(Effect.WRITES);
  }

  /** Returns whether a position of what is in flight came already. */
  boolean isCommitted() {
    return isCommitted;
  }

  /** Notes the end of a connection; returns whether that leaves a write in doubt. */
  boolean lost() {
    boolean isDoubtful = isDoubtful();
    flight = Set.of();
    isUnsure = true;
    return isDoubtful;
  }

  /**
   * Notes how a call ended.
   *
   * @param count of changed rows, for what tells; -1 where nobody does
   * @param number of the server's error
   */
  Due ended(End end, long count, int number, boolean isAutocommitNow, boolean isInTransactionNow) {
    isAutocommit = isAutocommitNow;
    isInTransaction = isInTransactionNow;
    boolean changed = changed(end, count);
    Due due = due(end, changed);
    if (end == End.DONE) {
      settle(changed);
    } else {
      settleFailed(changed, number);
    }
    flight = Set.of();
    return due;
  }

  private boolean changed(End end, long count) {
    if (!flight.contains(Effect.WRITES)) {
      return false;
    }
    return switch (end) {
      case DONE -> count != 0;
      // What came before the error may be committed.
      case REFUSED -> flight.contains(Effect.COMMITS) || flight.contains(Effect.SEVERAL);
      case FAILED -> true;
    };
  }

  private Due due(End end, boolean changed) {
    boolean writes = flight.contains(Effect.WRITES);
    if (flight.contains(Effect.TWO_PHASES) && (wrote || writes)) {
      // Whether a GTID of several statements is of its commit, nobody knows.
      if (flight.contains(Effect.SEVERAL) || (end == End.DONE && !(isCommitted && writes))) {
        return Due.UNCOVERED;
      }
    }
    boolean ends = flight.contains(Effect.COMMITS);
    if (isCommitted || !(changed || (wrote && ends)) || !commits) {
      return Due.NOTHING;
    }
    if (end == End.DONE && isInTransaction && !ends) {
      return Due.NOTHING;
    }
    return isUnlogged ? Due.UNCOVERED : Due.SAMPLE;
  }

  private void settle(boolean changed) {
    boolean isSingle = !flight.contains(Effect.SEVERAL);
    boolean begins = flight.contains(Effect.BEGINS);
    // Behind what ends one there is none open, but for a new one.
    if (flight.contains(Effect.ENDS) && isSingle && (begins || !isInTransaction)) {
      boolean unsure = isIsolationUnsure && begins; // What BEGIN ends hands its isolation on.
      closed();
      isIsolationUnsure = unsure;
      snapshot = takesSnapshot(flight) ? Snapshot.TAKEN : Snapshot.NONE;
    }
    wrote |= changed;
    if (!isInTransaction) {
      closed();
    }
    if (flight.contains(Effect.LOGGED) || flight.contains(Effect.UNLOGGED)) {
      isUnlogged = flight.contains(Effect.UNLOGGED);
    }
    isUnsure = false;
  }

  private void settleFailed(boolean changed, int number) {
    boolean isSingle = !flight.contains(Effect.COMMITS) && !flight.contains(Effect.SEVERAL);
    boolean defines = flight.contains(Effect.WRITES) && flight.contains(Effect.ENDS);
    if (isAlone && isSingle) {
      snapshot = Snapshot.NONE;
    } else if (isSingle && UNREAD.contains(number)) {
      snapshot = before;
    } else if (defines && BEHIND_COMMIT.contains(number) && !flight.contains(Effect.SEVERAL)) {
      isInTransaction = false;
      closed();
    } else if (flight.contains(Effect.ENDS)) {
      showNothing(); // Whether it began anew nobody knows.
    }
    wrote |= changed;
    isUnsure |= !isAutonomous() || flight.contains(Effect.COMMITS);
  }

  /** Takes in the server's flags behind a question of the library's own. */
  void heard(boolean isAutocommitNow, boolean isInTransactionNow) {
    isAutocommit = isAutocommitNow;
    isInTransaction = isInTransactionNow;
    isUnsure = false;
    if (!isInTransaction) {
      closed();
    }
  }

  private void closed() {
    wrote = false;
    isIsolationUnsure = false;
    snapshot = Snapshot.NONE;
  }
}
