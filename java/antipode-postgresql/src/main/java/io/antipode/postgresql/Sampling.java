package io.antipode.postgresql;

import io.antipode.lineage.Lineage;
import io.antipode.postgresql.Session.Due;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Asks, on one connection, for the positions of what its statements have committed. */
final class Sampling {
  /** How many tables of a transaction are remembered. */
  private static final int MOST = 64;

  /** How long a connection is waited for that the application had to itself. */
  private static final Duration SOON = Duration.ofSeconds(1);

  private final PostgreSqlShim shim;
  private final Link link;

  /** What only reads by its words, of the open transaction and in flight. */
  private final Reads reads;

  /** The tables that the open transaction changed, and that in flight. */
  private final Set<String> targets = new HashSet<>();

  /** Whether it changed any rows. */
  private boolean hasChanged;

  /** Whether the call in flight sends something to another server. */
  private boolean isSending;

  /** What was committed before the transaction began that is open; null for nothing. */
  private @Nullable CommittedBefore beforeOpen;

  /**
   * What is known of a commit.
   *
   * @param wrote whether the transaction had an id, which each has that writes here
   * @param isFlushed whether the commit waits until it is flushed
   * @param sample the answer to {@link Look#SAMPLE}; null where it did not come with it
   */
  record Commit(boolean wrote, boolean isFlushed, @Nullable Map<String, String> sample) {
    static Commit of(Map<String, String> asked, @Nullable Map<String, String> sample) {
      boolean wrote = !asked.getOrDefault("xid", "").isEmpty();
      return new Commit(wrote, Look.isFlushed(asked), sample);
    }
  }

  Sampling(PostgreSqlShim shim, Link link) {
    this.shim = shim;
    this.link = link;
    this.reads = new Reads(shim);
  }

  /** A call is about to be made outside of a transaction. */
  void begins() {
    reads.clear();
    targets.clear();
    hasChanged = false;
  }

  /** Notes a text that only reads by its words, with the functions of which it tells nothing. */
  void reads(String sql, Set<String> called) {
    reads.note(sql, called);
  }

  /** Notes a text that changes something, or calls what may. */
  void writes(String sql) {
    if (targets.size() < MOST) {
      targets.addAll(Elsewhere.targets(sql));
    }
    isSending |= Elsewhere.isSent(sql, shim.readonlyFunctions());
  }

  /**
   * A call is over.
   *
   * @param hasWritten whether it changed rows, for all that the server says
   */
  void over(boolean hasWritten) {
    hasChanged |= hasWritten;
    if (isSending) {
      isSending = false;
      shim.inDoubt(
          "a function of dblink sent it, perhaps to another server. Where such calls only read,"
              + " declare them: readonlyFunctions(Set.of(\"dblink\"))");
    }
  }

  /** The connection is gone: nothing can be asked. */
  void lost() {
    beforeOpen = null; // It stays in doubt.
  }

  /**
   * Does what the end of a call left to do.
   *
   * @param committed what is known of its commit; null where nobody asked
   */
  void take(Due due, @Nullable Commit committed) {
    switch (due) {
      case NOTHING -> {}
      case IN_DOUBT -> shim.inDoubt("it is prepared for anybody to commit");
      case NAMED -> named();
      case CHANGED -> elsewhere(false);
      case CALLED -> elsewhere(true);
      case LEFT_OPEN -> leftOpen();
      case EXACT -> sample(committed, true, false);
      case COVERING -> sample(committed, false, false);
      case INSIDE -> covering();
    }
  }

  /** Asks, once, whether the server says what a transaction holds locks on. */
  void learnsLocks() {
    try {
      shim.catalogue().learnLocks(link::ask);
    } catch (SQLException refused) {
      // It is asked again after the next such transaction.
    }
  }

  /** Asks for a position that covers what may have been written. */
  void covering() {
    sample(null, false, true);
  }

  /** Returns what the application may have written unobserved, on the connection in its hands. */
  Supplier<Lineage> unobserved() {
    try {
      return shim.found(link, link.ask(Look.SAMPLE, SOON).get(0), false, false);
    } catch (SQLException | NoLsnException error) {
      Lineage mark = shim.sayUnsampled(String.valueOf(error.getMessage()));
      return () -> mark;
    }
  }

  /** Returns whether the open transaction has an id, for all that is known. */
  boolean isWritten() {
    try {
      return Commit.of(link.ask(Look.BEFORE_COMMIT, SOON).get(0), null).wrote;
    } catch (SQLException error) {
      return true;
    }
  }

  /** Asks what may have been written by names in what was read. */
  private void named() {
    if (reads.mayHaveWritten(link)) {
      covering();
    }
    reads.clear();
  }

  /** Puts off what cannot be asked in the open transaction: that would take its snapshot. */
  private void leftOpen() {
    if (targets.isEmpty() && reads.verdict() == Catalogue.Verdict.READS) {
      return;
    }
    putOff();
  }

  private void putOff() {
    CommittedBefore held = beforeOpen;
    if (held == null) {
      held = new CommittedBefore(shim.datastore());
      beforeOpen = held;
    }
    Recording.deferRead(held);
  }

  /**
   * Asks for what a function may have committed by dblink, whose transaction goes on.
   *
   * @param isAnswering whether that has not failed; else it is asked for when it is over
   */
  void called(boolean isAnswering) {
    if (Scope.currentOrNull() == null) {
      return;
    }
    if (!isAnswering) {
      if (!Boolean.FALSE.equals(shim.catalogue().writesAway())) {
        putOff();
      }
      return;
    }
    try {
      if (shim.catalogue().elsewhere(link::ask, false).byFunctions()) {
        covering();
      }
    } catch (SQLException refused) {
      Lineage unused = shim.unsampled(String.valueOf(refused.getMessage()));
    }
  }

  /** No transaction is open any more: asks for what was put off. */
  void closes() {
    CommittedBefore held = beforeOpen;
    if (held == null) {
      return;
    }
    beforeOpen = null;
    try {
      held.settle(shim.found(link, link.ask(Look.SAMPLE).get(0), false, false));
    } catch (SQLException | NoLsnException error) {
      Lineage mark = shim.sayUnsampled(String.valueOf(error.getMessage()));
      held.settle(() -> mark);
    }
  }

  /** Asks for a position where something may have been written without an id. */
  private void elsewhere(boolean isCalling) {
    if (Scope.currentOrNull() == null) {
      return;
    }
    try {
      Elsewhere elsewhere = shim.catalogue().elsewhere(link::ask, false);
      if (hasChanged && !elsewhere.isAmong(targets)) { // It may be a new one.
        elsewhere = shim.catalogue().elsewhere(link::ask, true);
      }
      if (elsewhere.isAmong(targets) || (isCalling && elsewhere.byFunctions())) {
        covering();
      }
    } catch (SQLException refused) {
      // Who sees no foreign table changes none.
    }
  }

  /**
   * Asks for the position of a commit.
   *
   * @param isExact whether there was a write
   * @param isHidden whether nobody knows if the commit waited until it was flushed
   */
  private void sample(@Nullable Commit committed, boolean isExact, boolean isHidden) {
    try {
      Map<String, String> row =
          committed == null || committed.sample == null
              ? link.ask(Look.SAMPLE).get(0)
              : committed.sample;
      boolean isFlushed = committed == null ? Look.isFlushed(row) : committed.isFlushed;
      Supplier<Lineage> unused = shim.sampled(link, row, isExact, isFlushed && !isHidden);
      away();
    } catch (SQLException error) {
      Lineage unused = shim.unsampled(String.valueOf(error.getMessage()));
    }
  }

  /** Marks what was written at another server, through a foreign table. */
  private void away() {
    if (targets.isEmpty()) {
      return;
    }
    try {
      if (shim.catalogue().elsewhere(link::ask, false).writesAway(targets)) {
        shim.inDoubt("it was written at another server, through a foreign table");
      }
    } catch (SQLException refused) {
      // Who sees no foreign table changes none.
    }
  }
}
