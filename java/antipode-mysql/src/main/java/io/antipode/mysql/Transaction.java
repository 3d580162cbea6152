package io.antipode.mysql;

import java.util.Locale;
import java.util.Set;

/**
 * What is known of the transaction of a session. It follows from the calls that were seen, and a
 * driver's status word confirms it: where the two differ, nobody knows. An unknown transaction may
 * be open, and its snapshot is old.
 *
 * @param autocommit whether each statement outside of a transaction commits on its own
 * @param open whether a transaction is open
 * @param wrote whether the open transaction may have written
 * @param stays whether what it wrote may stay after a rollback: a function that it called may have
 *     written to a table without transactions
 */
record Transaction(
    Known autocommit,
    Known open,
    Snapshot snapshot,
    Isolation isolation,
    Wrote wrote,
    boolean stays) {
  /** Of a session of which nobody has seen anything. */
  static final Transaction UNKNOWN =
      new Transaction(
          Known.UNKNOWN, Known.UNKNOWN, Snapshot.TAKEN, Isolation.ANOTHER, Wrote.YES, false);

  /** Errors of a definition that it meets after its commit: a table exists, or does not. */
  private static final Set<Integer> AFTER_COMMIT = Set.of(1050, 1051);

  private static final Set<String> COMMITTED_READS = Set.of("READ-COMMITTED", "READ-UNCOMMITTED");

  /** Whether the open transaction reads from a snapshot. */
  enum Snapshot {
    NONE,
    /** It wrote and read nothing: a trigger or a function may have taken one. */
    PERHAPS,
    /** It locked all that it read: a view, too, may have taken one. */
    LOCKED,
    TAKEN;

    Snapshot or(Snapshot other) {
      return compareTo(other) < 0 ? other : this;
    }

    Snapshot atMost(Snapshot other) {
      return compareTo(other) > 0 ? other : this;
    }
  }

  /** Whether something wrote. */
  enum Wrote {
    NO,
    /** Only the server knows: a function may have, or a statement that failed. */
    PERHAPS,
    /** It did, or has to be taken for it. */
    YES;

    Wrote or(Wrote other) {
      return compareTo(other) < 0 ? other : this;
    }
  }

  /** The isolation of the open transaction. */
  enum Isolation {
    /** That of its session. */
    SESSIONS,
    /** It may be another one until the transaction ends. */
    ANOTHER,
    /** It may be another one from now on: a statement set that of the next transaction alone. */
    EACH_ITS_OWN
  }

  /**
   * What a driver's status word says of a session.
   *
   * @param autocommit unknown where the driver may have cleared the bit
   * @param open unknown where the driver may have cleared or set the bit
   */
  record Word(Known autocommit, Known open) {
    static final Word SILENT = new Word(Known.UNKNOWN, Known.UNKNOWN);
  }

  /** Returns whether each statement commits on its own now. */
  boolean isAutonomous() {
    return autocommit == Known.YES && open == Known.NO;
  }

  /** Returns whether a statement that writes may commit on its own now. */
  boolean mayBeAutonomous() {
    return autocommit != Known.NO && open != Known.YES;
  }

  /** Returns whether a statement that wrote may have committed on its own, as it is after it. */
  boolean mayBeAlone() {
    // Without autocommit, in a table without transactions, one begins none.
    return mayBeAutonomous() || open == Known.NO;
  }

  /** Returns whether a question of the library's own, and a rollback after it, changes nothing. */
  boolean endsByItself() {
    return isAutonomous() || (open == Known.NO && isolation != Isolation.EACH_ITS_OWN);
  }

  /** Returns whether it has to be asked for before a read is judged. */
  boolean isUnsure() {
    return autocommit == Known.UNKNOWN || open == Known.UNKNOWN;
  }

  /** Returns whether the next statement may take the snapshot of a transaction. */
  boolean isFresh() {
    return snapshot == Snapshot.NONE && !isAutonomous();
  }

  /** Returns whether it may have written what is not committed. */
  boolean isUncommitted() {
    return wrote != Wrote.NO && !isAutonomous();
  }

  /**
   * Returns whether its reads see what was committed last.
   *
   * @param level the isolation of the session
   */
  boolean readsCommitted(String level) {
    return open == Known.NO
        || (isolation == Isolation.SESSIONS
            && COMMITTED_READS.contains(level.toUpperCase(Locale.ROOT).replace(' ', '-')));
  }

  private Transaction with(Known autocommitNow, Known openNow) {
    return new Transaction(autocommitNow, openNow, snapshot, isolation, wrote, stays);
  }

  Transaction with(Snapshot taken) {
    return new Transaction(autocommit, open, taken, isolation, wrote, stays);
  }

  private Transaction with(Isolation another) {
    return new Transaction(autocommit, open, snapshot, another, wrote, stays);
  }

  /** Returns it with what a call wrote. */
  private Transaction and(Wrote more, Set<Effect> effects) {
    boolean calls = effects.contains(Effect.CALLS);
    return new Transaction(autocommit, open, snapshot, isolation, wrote.or(more), stays || calls);
  }

  /**
   * Returns it where statements may have been sent that nobody saw.
   *
   * @param word of a reply after them
   */
  Transaction unseen(Word word) {
    Transaction now = word.equals(Word.SILENT) ? lost(Set.of()) : with(word.autocommit, word.open);
    return now.open == Known.NO ? now.closed() : now.and(Wrote.PERHAPS, Set.of());
  }

  /** Returns it without anything of a transaction that has ended. */
  private Transaction closed() {
    Isolation next = isolation == Isolation.ANOTHER ? Isolation.SESSIONS : isolation;
    return new Transaction(autocommit, open, Snapshot.NONE, next, Wrote.NO, false);
  }

  // Calls.

  private static boolean takesSnapshot(Set<Effect> effects) {
    return effects.contains(Effect.READS)
        || effects.contains(Effect.SNAPSHOT)
        || effects.contains(Effect.MAY_SNAPSHOT);
  }

  /** Returns whether a call is the first of its transaction that may take the snapshot. */
  boolean mayTakeFirst(Set<Effect> effects) {
    boolean ends = effects.contains(Effect.ENDS);
    boolean writes = effects.contains(Effect.WRITES) && !ends; // For a trigger may read.
    return (snapshot == Snapshot.NONE || ends) && (writes || takesSnapshot(effects));
  }

  /** Returns it while a call is made. */
  Transaction starting(Set<Effect> effects) {
    Snapshot taken =
        !takesSnapshot(effects)
            ? (mayTakeFirst(effects) ? Snapshot.PERHAPS : Snapshot.NONE)
            : effects.contains(Effect.LOCKS) ? Snapshot.LOCKED : Snapshot.TAKEN;
    Transaction started = with(snapshot.or(taken));
    if (!effects.contains(Effect.ISOLATION)) {
      return started;
    }
    if (effects.contains(Effect.NEXT_ONLY)) {
      return started.with(Isolation.EACH_ITS_OWN);
    }
    return isAutonomous() || isolation == Isolation.EACH_ITS_OWN
        ? started
        : started.with(Isolation.ANOTHER);
  }

  /** Returns whether effects leave open what happens to autocommit and the transaction. */
  private static boolean isOpaque(Set<Effect> effects) {
    boolean commits = effects.contains(Effect.COMMITS);
    boolean ends = effects.contains(Effect.ENDS);
    return commits
        && (!ends
            || effects.contains(Effect.SEVERAL)
            || (effects.contains(Effect.READS) && effects.contains(Effect.WRITES)));
  }

  /**
   * Returns it after a call that the server did.
   *
   * @param sets what the call sets autocommit to, if that is known
   * @param changed whether it wrote
   * @param word what the reply to this very call says
   */
  Transaction done(Set<Effect> effects, Known sets, Wrote changed, Word word) {
    Transaction after =
        and(changed, effects).with(autocommitAfter(effects, sets), openAfter(effects, sets));
    // The word of several statements may have bits of the first ones. One without effects may be
    // answered with the word of a transaction of the server's own: HELP is.
    boolean isOfThis = !effects.isEmpty() && !effects.contains(Effect.SEVERAL);
    after = isOfThis ? after.learning(word) : after.hearing(word);
    boolean ends = effects.contains(Effect.ENDS) && !effects.contains(Effect.SEVERAL);
    boolean begins = effects.contains(Effect.BEGINS);
    if (ends && (begins || after.open == Known.NO)) {
      Isolation kept =
          begins ? isolation : after.closed().isolation; // What BEGIN ends hands it on.
      Snapshot taken = takesSnapshot(effects) ? Snapshot.TAKEN : Snapshot.NONE;
      after = after.closed().with(kept).with(taken);
    }
    return after.open == Known.NO ? after.closed() : after;
  }

  private Known autocommitAfter(Set<Effect> effects, Known sets) {
    return isOpaque(effects) ? sets : autocommit;
  }

  private Known openAfter(Set<Effect> effects, Known sets) {
    if (isOpaque(effects)) {
      if (sets == Known.UNKNOWN) {
        return Known.UNKNOWN;
      }
      // What switches it on commits; where it is on already a transaction stays open.
      boolean stays = sets == Known.NO || autocommit == Known.YES || open == Known.NO;
      return stays ? open : autocommit == Known.NO ? Known.NO : Known.UNKNOWN;
    }
    boolean begins = effects.contains(Effect.BEGINS);
    boolean ends = effects.contains(Effect.ENDS);
    if (effects.contains(Effect.SEVERAL) && (begins || ends)) {
      return Known.UNKNOWN;
    }
    if (begins || ends) {
      return Known.of(begins);
    }
    // Where autocommit is off the first statement that needs a table begins one.
    boolean mayNeed = takesSnapshot(effects) || effects.contains(Effect.WRITES);
    boolean mayBegin = open == Known.NO && autocommit != Known.YES && mayNeed;
    return mayBegin ? Known.UNKNOWN : open;
  }

  /** Returns it after an error of the server's, or of the driver alone. */
  Transaction failed(Set<Effect> effects, Transaction before, Wrote changed, int number) {
    boolean isSeveral = effects.contains(Effect.SEVERAL);
    boolean isSingle = !effects.contains(Effect.COMMITS) && !isSeveral;
    if (isSingle && (before.isAutonomous() || Errors.UNREAD.contains(number))) {
      return with(before.snapshot).with(before.autocommit, before.open);
    }
    if (isSingle && Errors.UNRESOLVED.contains(number)) {
      Snapshot seen = before.snapshot.or(snapshot.atMost(Snapshot.LOCKED));
      return and(changed, effects).with(seen).with(autocommit, Known.UNKNOWN);
    }
    boolean defines = effects.contains(Effect.WRITES) && effects.contains(Effect.ENDS);
    if (defines && !isSeveral && AFTER_COMMIT.contains(number)) {
      return with(autocommit, Known.NO).closed();
    }
    // A deadlock ends a transaction, other errors do not.
    return and(changed, effects)
        .with(isOpaque(effects) ? Known.UNKNOWN : autocommit, Known.UNKNOWN);
  }

  /** Returns it where nobody knows whether a call was made, or the session is another one. */
  Transaction lost(Set<Effect> effects) {
    return and(effects.contains(Effect.WRITES) ? Wrote.YES : Wrote.NO, effects)
        .with(Known.UNKNOWN, Known.UNKNOWN)
        .with(Snapshot.TAKEN);
  }

  // Status words.

  /** Returns what a word leaves of what was known, without anything that was not. */
  private Transaction hearing(Word word) {
    return with(autocommit.confirmedBy(word.autocommit), open.confirmedBy(word.open));
  }

  /** Returns what a word leaves of what was known, and what it says of what was not. */
  private Transaction learning(Word word) {
    Transaction heard = hearing(word);
    return heard.with(
        autocommit == Known.UNKNOWN ? word.autocommit : heard.autocommit,
        open == Known.UNKNOWN ? word.open : heard.open);
  }

  /** Returns it as the whole word of a reply says, which changed nothing. */
  Transaction told(Word word) {
    Transaction now = word.equals(Word.SILENT) ? this : with(word.autocommit, word.open);
    return now.open == Known.NO ? now.closed() : now;
  }

  /**
   * Returns it when a pool lends its connection: what an application left open the pool may have
   * ended.
   *
   * @param isAutocommit as the driver remembers it
   * @param word of the last reply, which nobody saw
   */
  Transaction lent(boolean isAutocommit, Word word) {
    boolean isKept = open == Known.NO && autocommit == Known.of(isAutocommit);
    Transaction kept = isKept ? this : lost(Set.of());
    if (word.open == Known.YES) {
      return kept.with(kept.autocommit, Known.UNKNOWN).with(Snapshot.TAKEN);
    }
    Transaction now = kept.learning(word);
    return now.open == Known.NO ? now.closed() : now;
  }
}
