package io.antipode.postgresql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.jdbc.Proofs;
import io.antipode.lineage.Dependency;
import io.antipode.postgresql.Link.State;
import java.time.Duration;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What is known of the session of one connection: its transaction, what it showed, what is in
 * flight.
 *
 * <p>Without I/O: calls are reported before they are made and after, and it decides whether a read
 * may be made, and whether a position is asked for. How the transaction stands is the server's own
 * word, of the packet that ends each reply.
 */
final class Session {
  /** What to do with a read under a floor. */
  enum Verdict {
    PASS,
    HOLD,
    /** It depends on the isolation of the open transaction, which is asked for. */
    ASK,
    STALE
  }

  /** How a call ended. */
  enum End {
    DONE,
    /** The server answered with an error. */
    REFUSED,
    /** The driver failed: what the server did nobody knows. */
    FAILED
  }

  /** What the end of a call leaves to do. */
  enum Due {
    NOTHING,
    /** A position of a write is missing. */
    EXACT,
    /** The same, where only the server knows whether there was a write. */
    COVERING,
    /** The same, and nobody knows whether its commit waited until it was flushed. */
    INSIDE,
    /** By a name in what was read it may have written. */
    NAMED,
    /** Nothing was committed here that has an id: a foreign table may have been changed. */
    CHANGED,
    /** The same, and what was called may have written at another server, too. */
    CALLED,
    /** It left a transaction open, after it may have committed one: that is asked for later. */
    LEFT_OPEN,
    /** There will never be a position. */
    IN_DOUBT
  }

  /** Behind a pooler another server may answer next. */
  private static final Duration FRESH = Duration.ofSeconds(2);

  /** What may have been done of which nobody knows whether it is committed. */
  private static final Set<Effect> WRITING = Set.of(Effect.WRITES, Effect.CALLS);

  /** What the catalogue may know better. */
  private static final Set<Effect> READING = Set.of(Effect.READS, Effect.CALLS);

  private static final Set<Effect> ANYTHING =
      Set.of(Effect.READS, Effect.WRITES, Effect.CALLS, Effect.COMMITS_INSIDE);

  private final LineageSetting.Held setting = new LineageSetting.Held();
  private final Temporary temporary = new Temporary();
  private final Proofs proofs = new Proofs();
  private long lookedNs;

  /** What the call in flight may do, and how the session stood before it. */
  private Set<Effect> flight = EnumSet.noneOf(Effect.class);

  private State before = State.IDLE;

  /** What the open transaction may have done. */
  private Set<Effect> transaction = EnumSet.copyOf(ANYTHING);

  /** The floor of the call in flight, once it is met; null for none. */
  private @Nullable Floor met;

  /** Of the oldest cursor that is declared: what it shows. */
  private @Nullable Floor declared;

  private boolean isDeclared;
  private boolean isHeld;

  /** Of the first call in the open transaction, which may open a cursor: what that shows. */
  private @Nullable Floor opened;

  private boolean isOpened;

  private static boolean hasAny(Set<Effect> effects, Set<Effect> some) {
    return !Collections.disjoint(effects, some);
  }

  /** Returns what is known of its setting for the lineages of rows. */
  LineageSetting.Held setting() {
    return setting;
  }

  /** Returns what its transactions change of its temporary tables. */
  Temporary temporary() {
    return temporary;
  }

  // Reads.

  /** Notes that a call is about to be made. */
  void starts(Set<Effect> effects, State state) {
    flight = EnumSet.noneOf(Effect.class);
    flight.addAll(effects);
    before = state;
    met = null;
  }

  /** Returns whether the call that is about to be made may be sent. */
  Verdict judge(Floor floor) {
    if (flight.contains(Effect.IMPORTS) && flight.contains(Effect.READS)) {
      return Verdict.STALE; // Its snapshot is another transaction's, however old.
    }
    boolean fetches = flight.contains(Effect.FETCHES);
    if (fetches && (isDeclared || isOpened)) {
      boolean isShown =
          (!isDeclared || floor.isWithin(declared)) && (!isOpened || floor.isWithin(opened));
      return isShown ? passing(floor) : Verdict.STALE;
    }
    if (before == State.OPEN) {
      if (fetches) {
        return Verdict.STALE;
      }
      return proofs.isShown(floor) ? passing(floor) : Verdict.ASK;
    }
    if (System.nanoTime() - lookedNs > FRESH.toNanos()) {
      proofs.reaches("");
    }
    return proofs.isMet(floor) ? passing(floor) : Verdict.HOLD;
  }

  private Verdict passing(Floor floor) {
    met = floor;
    return Verdict.PASS;
  }

  /** Returns whether the snapshot of the open transaction shows all that a floor demands. */
  boolean shows(Floor floor) {
    return proofs.isShown(floor);
  }

  /** Returns whether the open transaction has sent nothing so far that reads, writes or calls. */
  boolean isUnread() {
    return !hasAny(transaction, ANYTHING);
  }

  /** Notes what a poll on this connection showed, of a server with this incarnation. */
  void looked(String server) {
    proofs.reaches(server);
    lookedNs = System.nanoTime();
  }

  /** Notes that a floor was met on this connection. */
  void passed(Floor floor, @Nullable Observation seen) {
    met = floor;
    proofs.met(
        floor,
        floor.writes().stream().filter(each -> isVisible(seen, each)).toList(),
        floor.promises().stream().filter(each -> isVisible(seen, each)).toList());
    if (before == State.OPEN) {
      proofs.show(); // Its reads see what is committed.
    }
  }

  private static boolean isVisible(@Nullable Observation seen, Dependency each) {
    return seen != null && seen.status(each) == Status.VISIBLE;
  }

  /** Notes that the call is sent now: outside of a transaction it may begin one. */
  void sent() {
    if (before != State.OPEN) {
      proofs.show();
    }
  }

  // Writes.

  /** Returns whether the call in flight is one statement that commits the open transaction. */
  boolean isCommitting() {
    return before == State.OPEN
        && flight.contains(Effect.COMMITS)
        && !flight.contains(Effect.SEVERAL);
  }

  /** Returns whether the call in flight writes. */
  boolean isWriting() {
    return flight.contains(Effect.WRITES);
  }

  /** Returns whether the call in flight may call what writes. */
  boolean isCalling() {
    return flight.contains(Effect.CALLS);
  }

  /** Returns whether a transaction is open that may have written. */
  boolean mayHaveWritten(State state) {
    return state == State.OPEN && hasAny(transaction, WRITING);
  }

  /** Returns whether a transaction is open that wrote. */
  boolean isUncommitted(State state) {
    return state == State.OPEN && transaction.contains(Effect.WRITES);
  }

  /**
   * Notes that the connection was lost, or a call given up, before its reply.
   *
   * @param wrote whether the transaction that it committed had written; null where nobody asked
   * @return whether that leaves a write in doubt
   */
  boolean lost(@Nullable Boolean wrote) {
    boolean commits = flight.contains(Effect.COMMITS);
    boolean isDoubtful;
    if (before == State.OPEN) {
      boolean isOver = commits || (flight.contains(Effect.ENDS) && isSeveral());
      isDoubtful = isOver && (hasAny(transaction, WRITING) || hasAny(flight, WRITING));
    } else {
      isDoubtful = hasAny(flight, WRITING) && (commits || !flight.contains(Effect.BEGINS));
    }
    isDoubtful |= flight.contains(Effect.COMMITS_INSIDE);
    if (wrote != null) {
      isDoubtful = wrote;
    }
    flight.clear();
    transaction.clear();
    proofs.reaches("");
    proofs.showNothing();
    isDeclared = false;
    isHeld = false;
    isOpened = false;
    return isDoubtful;
  }

  /**
   * Notes how a call ended.
   *
   * @param now how the session stands
   * @param count of changed rows, as the server says; -1 where it does not
   * @param wrote whether the transaction that the call committed had written; null where nobody
   *     asked
   */
  Due ended(State now, End end, long count, @Nullable Boolean wrote) {
    Set<Effect> done = EnumSet.noneOf(Effect.class);
    if (before == State.OPEN) {
      done.addAll(transaction);
    }
    boolean isEnded = now == State.IDLE;
    if (isEnded) {
      transaction.clear();
      closeCursors();
    } else {
      isEnded = isChained(end);
      transaction = EnumSet.noneOf(Effect.class);
      transaction.addAll(flight);
      if (isEnded) {
        proofs.showNothing();
        closeCursors();
      } else {
        transaction.addAll(done);
        declare();
        if (flight.contains(Effect.IMPORTS)) {
          proofs.showNothing();
          transaction.add(Effect.READS); // It has its snapshot.
        }
      }
    }
    Due due = isEnded ? due(end, count, wrote, done) : leftOpen();
    flight = EnumSet.noneOf(Effect.class);
    return due;
  }

  private boolean isChained(End end) {
    boolean chains = flight.contains(Effect.COMMITS) && flight.contains(Effect.BEGINS);
    return chains && !isSeveral() && before == State.OPEN && end == End.DONE;
  }

  private boolean isSeveral() {
    return flight.contains(Effect.SEVERAL);
  }

  /** Returns what is left to do of a text after which a transaction is open, its own or another. */
  private Due leftOpen() {
    if (!isSeveral()) {
      return Due.NOTHING;
    }
    boolean wrote = hasAny(transaction, WRITING);
    if (wrote && flight.contains(Effect.TWO_PHASES)) {
      return Due.IN_DOUBT;
    }
    boolean isAny = wrote || transaction.contains(Effect.READS);
    return isAny && flight.contains(Effect.COMMITS) ? Due.LEFT_OPEN : Due.NOTHING;
  }

  private void declare() {
    if (flight.contains(Effect.DECLARES) && !isDeclared) {
      isDeclared = true; // Of several, the oldest counts.
      declared = met;
    }
    isHeld |= flight.contains(Effect.HOLDS);
    if (flight.contains(Effect.CALLS) && !isOpened) {
      isOpened = true;
      opened = met;
    }
  }

  private void closeCursors() {
    declare();
    isDeclared &= isHeld;
    isOpened = false;
  }

  /** Returns what is left to do of what the call, and the transaction that it ended, committed. */
  private Due due(End end, long count, @Nullable Boolean wrote, Set<Effect> done) {
    Set<Effect> all = EnumSet.noneOf(Effect.class);
    all.addAll(flight);
    all.addAll(done);
    if (wrote != null) {
      return wrote ? Due.EXACT : withoutId(all);
    }
    boolean isInside = flight.contains(Effect.COMMITS_INSIDE) || isSeveral();
    boolean isPreparing = flight.contains(Effect.TWO_PHASES);
    boolean isOver =
        before != State.OPEN || flight.contains(Effect.COMMITS) || isPreparing || isInside;
    boolean isRefused = end == End.REFUSED;
    if (!isOver || ((isRefused || before == State.FAILED) && !isInside)) {
      return all.contains(Effect.CALLS) ? Due.CALLED : Due.NOTHING; // What others commit stays.
    }
    if (isPreparing && !isRefused) {
      return hasAny(all, WRITING) ? Due.IN_DOUBT : Due.NOTHING;
    }
    if (!all.contains(Effect.WRITES)) {
      return hasAny(all, READING) ? Due.NAMED : Due.NOTHING;
    }
    if (isInside || flight.contains(Effect.CALLS) || before == State.OPEN) {
      return Due.INSIDE;
    }
    return end == End.DONE && count != 0 ? Due.EXACT : Due.COVERING;
  }

  private Due withoutId(Set<Effect> all) {
    boolean isWriting = all.contains(Effect.WRITES);
    if (all.contains(Effect.CALLS) || (isWriting && temporary.isAlone())) {
      return Due.CALLED; // Without an id nothing shows what triggers may have sent away.
    }
    return isWriting ? Due.CHANGED : Due.NOTHING;
  }
}
