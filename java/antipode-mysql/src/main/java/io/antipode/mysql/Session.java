package io.antipode.mysql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.jdbc.Proofs;
import io.antipode.lineage.Dependency;
import io.antipode.mysql.Transaction.Snapshot;
import io.antipode.mysql.Transaction.Word;
import io.antipode.mysql.Transaction.Wrote;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What is known of the session of one connection: its transaction, what it showed, what is in
 * flight.
 *
 * <p>Without I/O: calls are reported before they are made and after, and it decides whether a read
 * may be made, whether the position of a write is missing, and whether a lost connection leaves one
 * in doubt. Where nobody knows, a statement may have written and committed.
 */
final class Session {
  /** What to do with a read under a floor. */
  enum Verdict {
    PASS,
    HOLD,
    /** A snapshot is open that does not show the floor, unless reads see the last commits. */
    OLD_SNAPSHOT,
    /** The transaction wrote and read nothing: a trigger or a function may have taken one. */
    TRIGGERED,
    /** It locked all that it read: a view, too, may have taken one. */
    LOCKED
  }

  /** What the end of a call leaves to do. */
  enum Due {
    NOTHING,
    /** A position is missing. */
    SAMPLE,
    /** The same, where only the server knows whether there was a write. */
    PERHAPS,
    /** The same of an open transaction, whose end will be asked about: what no rollback undoes. */
    LASTING,
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

  /**
   * A call in flight.
   *
   * @param autocommit what it sets that to, if it is known
   * @param before what the transaction was when it was made
   * @param isCommitted whether a position of it came
   */
  private record Call(
      Set<Effect> effects, Known autocommit, Transaction before, boolean isCommitted) {
    boolean has(Effect effect) {
      return effects.contains(effect);
    }

    /** Returns whether it may commit, or may have. */
    boolean mayCommit() {
      return has(Effect.COMMITS) || before.mayBeAutonomous();
    }

    Call committed() {
      return new Call(effects, autocommit, before, true);
    }
  }

  /** Of a statement whose text does not show what it does. */
  static final Set<Effect> ANYTHING = EnumSet.of(Effect.READS, Effect.WRITES, Effect.COMMITS);

  private final Proofs proofs = new Proofs();
  private Transaction transaction = Transaction.UNKNOWN;
  private Call call = new Call(Set.of(), Known.UNKNOWN, transaction, false);
  private boolean isUnlogged;

  /** Whether replies report what is committed. */
  private boolean isTold;

  /** Whether replies have reported what was committed. */
  private boolean isProved;

  /** Whether the reply to the rollback in flight warns that not all was rolled back. */
  private boolean isWarned;

  /** Whether a poll of the library's own opened the snapshot. */
  private boolean isLooked;

  /** Notes which server the connection leads to; what another one showed counts no more. */
  void reaches(String incarnation) {
    proofs.reaches(incarnation);
  }

  Transaction transaction() {
    return transaction;
  }

  // Reads.

  /** Returns whether a statement that reads, or may take the snapshot, may be sent. */
  Verdict judge(Floor floor, Set<Effect> effects) {
    boolean renews = effects.contains(Effect.ENDS) && !effects.contains(Effect.SEVERAL);
    if (transaction.snapshot() != Snapshot.NONE && !renews) {
      if (shows(floor)) {
        return Verdict.PASS;
      }
      return switch (transaction.snapshot()) {
        case TAKEN -> Verdict.OLD_SNAPSHOT;
        case LOCKED -> Verdict.LOCKED;
        default -> Verdict.TRIGGERED;
      };
    }
    return proofs.isMet(floor) ? Verdict.PASS : Verdict.HOLD;
  }

  /** Returns whether the snapshot of the open transaction shows all that a floor demands. */
  boolean shows(Floor floor) {
    return proofs.isShown(floor);
  }

  /**
   * Notes that a floor was met on this connection.
   *
   * @param seen what the last poll showed; null where there was none
   * @param renews whether reads of the open transaction see it
   */
  void passed(Floor floor, @Nullable Observation seen, boolean renews) {
    proofs.met(
        floor,
        floor.writes().stream().filter(each -> isVisible(seen, each)).toList(),
        floor.promises().stream().filter(each -> isVisible(seen, each)).toList());
    if (renews || isLooked) {
      proofs.show();
      isLooked = false;
    }
  }

  private static boolean isVisible(@Nullable Observation seen, Dependency each) {
    return seen != null && seen.status(each) == Status.VISIBLE;
  }

  /** A poll of the library's own opened the snapshot of the application's transaction. */
  void snapshotTaken() {
    transaction = transaction.with(Snapshot.TAKEN);
    isLooked = true;
    proofs.showNothing();
  }

  /** A question of the library's own may have opened a snapshot. */
  void mayHaveRead() {
    if (transaction.isFresh()) {
      transaction = transaction.with(Snapshot.TAKEN);
      proofs.showNothing();
    }
  }

  // Calls.

  /**
   * Notes that a call is about to be made.
   *
   * @param autocommit what it sets that to, if it is known
   */
  void starts(Set<Effect> effects, Known autocommit) {
    call = new Call(effects, autocommit, transaction, false);
    isLooked = false;
    if (transaction.mayTakeFirst(effects)) {
      proofs.show();
    }
    transaction = transaction.starting(effects);
  }

  /** Notes whether replies report what is committed. */
  void listens(boolean isListening) {
    isTold = isListening;
  }

  /** Notes that writes of this session were committed. */
  void committed() {
    call = call.committed();
    isProved = true;
  }

  /** Returns whether replies have reported what was committed. */
  boolean isProved() {
    return isProved;
  }

  /** Returns whether what is in flight undoes a transaction that wrote. */
  boolean isUndoing() {
    return call.has(Effect.ENDS) && !call.has(Effect.COMMITS) && transaction.wrote() != Wrote.NO;
  }

  /** Notes that the server warns that not all was rolled back. */
  void warned() {
    isWarned = true;
  }

  /** Returns whether what is in flight may commit a write, or leave it to others to commit. */
  boolean isDoubtful() {
    boolean wrote = transaction.wrote() != Wrote.NO;
    if (call.has(Effect.TWO_PHASES) && wrote) {
      return true;
    }
    return call.mayCommit() && (call.has(Effect.WRITES) || (wrote && call.has(Effect.COMMITS)));
  }

  /** Returns whether what is in flight leaves a write to others: its GTID is of no commit. */
  boolean isPreparing() {
    return call.has(Effect.TWO_PHASES) && !call.has(Effect.WRITES);
  }

  /** Notes the end of a connection; returns whether that leaves a write in doubt. */
  boolean lost() {
    boolean isDoubtful = isDoubtful();
    transaction = transaction.lost(call.effects);
    proofs.showNothing();
    call = new Call(Set.of(), Known.UNKNOWN, transaction, false);
    return isDoubtful;
  }

  /**
   * Notes how a call ended.
   *
   * @param count of changed rows, for what reports them; -1 where nobody does
   * @param number of the server's error
   * @param word what the reply to this very call says
   */
  Due ended(End end, long count, int number, Word word) {
    Wrote changed = changed(end, count, number);
    Wrote wrote = transaction.wrote();
    boolean stays = isUndoing() && (transaction.stays() || isWarned);
    if (end == End.DONE) {
      transaction = transaction.done(call.effects, call.autocommit, changed, word);
    } else {
      transaction = transaction.failed(call.effects, call.before, changed, number);
      if (call.has(Effect.ENDS)) {
        proofs.showNothing(); // Whether it began again nobody knows.
      }
    }
    Due due = due(end, changed, wrote, stays);
    if (end == End.DONE && (call.has(Effect.LOGGED) || call.has(Effect.UNLOGGED))) {
      isUnlogged = call.has(Effect.UNLOGGED);
    }
    call = new Call(Set.of(), Known.UNKNOWN, transaction, false);
    isWarned = false;
    return due;
  }

  private Wrote changed(End end, long count, int number) {
    if (!call.has(Effect.WRITES)) {
      return Wrote.NO;
    }
    return switch (end) {
      case DONE -> count > 0 ? Wrote.YES : call.has(Effect.CALLS) ? Wrote.PERHAPS : of(count != 0);
      case REFUSED ->
          // What came before the error may be committed, or in a table without transactions.
          call.has(Effect.COMMITS) || call.has(Effect.SEVERAL)
              ? Wrote.YES
              : Errors.isUnwritten(number) ? Wrote.NO : Wrote.PERHAPS;
      case FAILED -> Wrote.YES;
    };
  }

  private static Wrote of(boolean wrote) {
    return wrote ? Wrote.YES : Wrote.NO;
  }

  /**
   * Returns what is left to do.
   *
   * @param wrote whether the transaction did before
   * @param stays whether something of it may be there after a rollback
   */
  private Due due(End end, Wrote changed, Wrote wrote, boolean stays) {
    boolean writes = call.has(Effect.WRITES);
    if (call.has(Effect.TWO_PHASES) && (wrote != Wrote.NO || writes)) {
      // Whether a GTID of several statements is of its commit, nobody knows.
      if (call.has(Effect.SEVERAL) || (end == End.DONE && !(call.isCommitted && writes))) {
        return Due.UNCOVERED;
      }
    }
    boolean commits = call.has(Effect.COMMITS);
    Wrote all = stays ? Wrote.PERHAPS : commits ? changed.or(wrote) : changed;
    if (isKnown(end) || all == Wrote.NO) {
      return Due.NOTHING;
    }
    // The word of its reply may say where it was; an error's has none.
    boolean mayBeCommitted =
        end == End.DONE ? transaction.mayBeAlone() : call.before.mayBeAutonomous();
    if (!commits && !stays && !mayBeCommitted) {
      // Tables without transactions, and sequences, have it by now.
      boolean isKnown = changed == Wrote.YES && end == End.DONE;
      return !isTold ? Due.LASTING : isKnown ? Due.NOTHING : Due.PERHAPS;
    }
    if (isUnlogged && !call.isCommitted) {
      return Due.UNCOVERED;
    }
    return all == Wrote.YES && !call.isCommitted ? Due.SAMPLE : Due.PERHAPS;
  }

  /**
   * Returns whether the position that came is of all that the call committed: that of one of
   * several statements says nothing of what a later one wrote that returns rows, or fails.
   */
  private boolean isKnown(End end) {
    boolean mayHide =
        end != End.DONE || call.has(Effect.CALLS) || call.effects.containsAll(ANYTHING);
    return call.isCommitted && !(call.has(Effect.SEVERAL) && mayHide);
  }

  // What others say.

  /**
   * Notes that a pool lends the connection.
   *
   * @param isAutocommit as the driver remembers it
   * @param word of the last reply, which nobody saw
   */
  void lent(boolean isAutocommit, Word word) {
    transaction = transaction.lent(isAutocommit, word);
  }

  /**
   * Notes that statements may have been sent that nobody saw, and that a pool gets the connection
   * back: what is open by then may have written, and is committed by whoever borrows it next.
   *
   * @param word of the reply to a question of the library's own, which came after them
   */
  void unseen(Word word) {
    transaction = transaction.unseen(word);
  }

  /** Notes the whole word of the reply to a question of the library's own. */
  void told(Word word) {
    transaction = transaction.told(word);
  }
}
