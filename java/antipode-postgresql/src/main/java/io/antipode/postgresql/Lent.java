package io.antipode.postgresql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.BorrowedConnection;
import io.antipode.jdbc.Called;
import io.antipode.jdbc.HeldCall;
import io.antipode.jdbc.Texts;
import io.antipode.postgresql.Link.State;
import io.antipode.postgresql.Sampling.Commit;
import io.antipode.postgresql.Session.Due;
import io.antipode.postgresql.Session.End;
import io.antipode.postgresql.Session.Verdict;
import io.antipode.request.Recording;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import net.ttddyy.dsproxy.ExecutionInfo;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A connection while the application has it: what happens before and after each of its calls. */
final class Lent extends BorrowedConnection {
  /** What the driver says of a statement that was cancelled. */
  private static final HeldCall.Interrupted INTERRUPTED = new HeldCall.Interrupted("57014", 0);

  private static final Pattern DEFINING =
      Pattern.compile("\\b(?:CREATE|ALTER)\\b", Pattern.CASE_INSENSITIVE);

  private static final Set<String> COMMITTED_READS = Set.of("read committed", "read uncommitted");

  private final PostgreSqlShim shim;
  private final Link link;
  private final Session session;

  /** Stores lineages with rows; null where nothing does. */
  private final @Nullable RowLineages lineages;

  /** What observes the result that the application is about to get; null for nothing. */
  private RowLineages.@Nullable Shown seen;

  /** Asks for the positions of what was committed. */
  private final Sampling sampling;

  /** Whether the open transaction may have changed the schema. */
  private boolean isDefining;

  /** What came before and with the commit in flight; null where nobody asked. */
  private @Nullable Commit commit;

  private boolean isUncommitted;

  /** What the application may write on the driver's connection; null as long as it has none. */
  private @Nullable Unobserved unobserved;

  Lent(
      PostgreSqlShim shim,
      Link link,
      Session session,
      @Nullable RowLineages lineages,
      Places places) {
    super(shim, places);
    this.shim = shim;
    this.link = link;
    this.session = session;
    this.lineages = lineages;
    this.sampling = new Sampling(shim, link);
  }

  @Override
  protected Connection driver() {
    return link.driver();
  }

  // Before.

  @Override
  protected void beforeStatements(ExecutionInfo execution, List<QueryInfo> queries) {
    Set<Effect> effects = EnumSet.noneOf(Effect.class);
    StringBuilder texts = new StringBuilder();
    if (link.state() == State.IDLE) {
      sampling.begins();
      session.temporary().begins();
    }
    for (QueryInfo query : queries) {
      String sql = query.getQuery();
      boolean isEscape = sql.stripLeading().startsWith("{"); // A call, as JDBC writes it.
      Set<Effect> one = Statements.effects(isEscape ? "CALL" : sql, shim.readonlyFunctions());
      if (sql.indexOf(';') >= 0 && Statements.isUnreadable(sql)) {
        one.add(Effect.COMMITS); // For all that can be read.
        one.add(Effect.ENDS);
      }
      if (one.contains(Effect.READS) && !hasAny(one, Effect.WRITES, Effect.FETCHES)) {
        reads(sql, one);
      }
      if (one.contains(Effect.WRITES)) {
        session.temporary().writes(sql, one);
        if (changesSchema(sql, one)) {
          isDefining = true;
          shim.catalogue().forget();
        }
      }
      if (hasAny(one, Effect.WRITES, Effect.CALLS)) {
        sampling.writes(sql);
      }
      effects.addAll(one);
      texts.append(sql).append(';');
    }
    if (execution.isBatch() || queries.size() > 1) {
      effects.add(Effect.SEVERAL);
    }
    before(effects, execution.getStatement());
    RowLineages rows = lineages;
    if (rows != null) {
      String sql = texts.toString();
      Sent call = new Sent(sql, effects, rows.mentions(sql), Sent.parameters(queries));
      asking(() -> rows.before(call, execution.getStatement()));
    }
    if (session.isCommitting()) {
      askBeforeCommit();
    }
  }

  private void askBeforeCommit() {
    asking(() -> commit = Commit.of(link.ask(beforeCommit()).get(0), null));
  }

  /** Returns what is asked before the open transaction is committed. */
  private String beforeCommit() {
    boolean isTemporary = session.temporary().isAlone() && shim.catalogue().seesLocks();
    return isTemporary ? Look.BEFORE_TEMPORARY : Look.BEFORE_COMMIT;
  }

  @Override
  protected boolean observes(ResultSet rows) throws SQLException {
    seen = lineages == null ? null : lineages.shown(rows);
    return seen != null || super.observes(rows);
  }

  @Override
  protected ResultSetProxyLogic shown(ResultSet rows, ResultSetProxyLogic plain) {
    return seen == null ? plain : seen.of(rows, plain);
  }

  private static boolean hasAny(Set<Effect> effects, Effect one, Effect other) {
    return effects.contains(one) || effects.contains(other);
  }

  /** Notes a text that only reads by its words; the catalogue knows better what it calls. */
  private void reads(String sql, Set<Effect> effects) {
    Set<String> called =
        effects.contains(Effect.CALLS)
            ? Statements.unknownFunctions(sql, shim.readonlyFunctions())
            : Set.of();
    Catalogue.Verdict verdict = shim.catalogue().mayWrite(sql, called);
    if (verdict == Catalogue.Verdict.READS) {
      effects.remove(Effect.CALLS);
      return;
    }
    sampling.reads(sql, called);
    if (verdict == Catalogue.Verdict.MAY_WRITE) {
      effects.add(Effect.CALLS);
    }
    if (link.state() != State.IDLE) {
      shim.unknownFunctions(called); // Nobody will ask what they are.
    }
  }

  /** Returns whether a text that writes may change what names mean; a script, anywhere. */
  private static boolean changesSchema(String sql, Set<Effect> effects) {
    if (hasAny(effects, Effect.SEVERAL, Effect.COMMITS_INSIDE)) {
      return Texts.isTooLong(sql) || DEFINING.matcher(sql).find(); // A long one is not read.
    }
    return DEFINING.matcher(sql.stripLeading()).lookingAt();
  }

  /** Holds back what reads, or begins a transaction in which others read, as barriers demand. */
  private void before(Set<Effect> effects, @Nullable Statement statement) {
    State state = link.state();
    session.starts(effects, state);
    commit = null;
    newStale();
    if (state == State.IDLE || state == State.OPEN) { // A failed one refuses, whatever it shows.
      Floor floor = floor(effects, state);
      if (floor != null) {
        hold(floor, statement);
      }
    }
    session.sent();
  }

  private @Nullable Floor floor(Set<Effect> effects, State state) {
    if (effects.contains(Effect.READS)) {
      return Floor.current(shim, session, stale());
    }
    boolean begins = state == State.IDLE && (link.opens() || effects.contains(Effect.BEGINS));
    return begins ? Floor.currentAgain(shim, stale()) : null;
  }

  private void hold(Floor floor, @Nullable Statement statement) {
    Verdict verdict = session.judge(floor);
    if (verdict == Verdict.PASS) {
      floor.pass();
      return;
    }
    hold(statement, call -> await(floor, verdict, call));
  }

  private void await(Floor floor, Verdict verdict, HeldCall call) throws Exception {
    long untilNs = System.nanoTime() + floor.pollTimeout().toNanos();
    link.setTimeout(floor.pollTimeout());
    @Nullable Observation[] seen = new Observation[1];
    try {
      Floor.Look look = most -> seen[0] = observed(floor, most);
      if (verdict == Verdict.STALE || (verdict == Verdict.ASK && !readsCommitted())) {
        Backend backend = verdict == Verdict.ASK ? unread() : null;
        if (backend == null) {
          stale(floor);
          return;
        }
        look = most -> seen[0] = looked(backend.look(shim, floor, most));
      }
      call.await(floor, look, INTERRUPTED);
    } catch (Backend.UnprovedException unproved) {
      stale(floor);
      return;
    } catch (SQLException error) {
      if (System.nanoTime() >= untilNs) {
        floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      }
      throw error;
    }
    if (!floor.isServed()) {
      session.passed(floor, seen[0]);
    }
  }

  /**
   * Returns the process of a transaction that has no snapshot so far, as another connection may
   * prove; null where it may have one, or none that goes to that server is known.
   */
  private @Nullable Backend unread() {
    return session.isUnread() && shim.canPoll() ? link.process() : null;
  }

  private boolean readsCommitted() throws SQLException {
    Map<String, String> row = link.ask(Look.ISOLATION).get(0);
    return COMMITTED_READS.contains(row.getOrDefault("transaction_isolation", ""));
  }

  private void stale(Floor floor) {
    floor.failSnapshot(
        new StaleSnapshotException(
            "this connection to "
                + shim.datastore()
                + " reads from a snapshot that is older than what the barrier waited for: commit or"
                + " roll back its transaction before the read"),
        session::shows);
  }

  private Observation observed(Floor floor, Duration most) {
    return looked(shim.look(link, floor.writes(), floor.promises(), most));
  }

  private Observation looked(Observation shown) {
    session.looked(shown.server());
    return shown;
  }

  @Override
  protected @Nullable Observation poll(Floor floor) {
    State state = link.state();
    session.starts(Set.of(Effect.READS), state);
    if (state != State.IDLE || session.judge(floor) != Verdict.HOLD) {
      return null;
    }
    try {
      int kept = driver().getNetworkTimeout();
      try {
        Observation shown = observed(floor, floor.pollTimeout());
        if (floor.writes().stream().allMatch(each -> shown.status(each) == Status.VISIBLE)
            && floor.promises().stream().allMatch(each -> shown.status(each) == Status.VISIBLE)) {
          session.passed(floor, shown);
        }
        return shown;
      } finally {
        restore(kept);
      }
    } catch (SQLException | RuntimeException error) {
      return null;
    }
  }

  @Override
  protected void beforeCall(Called called, @Nullable Boolean autocommit) {
    boolean isNothing = called == Called.AUTOCOMMIT && !Boolean.TRUE.equals(autocommit);
    before(isNothing ? Set.of() : Statements.effects(called), null);
    if (session.isWriting()) {
      session.temporary().others(); // Of which table nobody knows.
    }
    RowLineages rows = lineages;
    if (rows != null) {
      Set<Effect> effects = Statements.effects(called);
      if (called == Called.ROW_WRITE) {
        effects.add(Effect.CALLS); // Of which table nobody knows.
      }
      asking(() -> rows.before(new Sent("", effects, Mentions.NOTHING, Map.of()), null));
    }
    boolean isTogether = link.commitsTogether() && !link.isStandby();
    if (!session.isCommitting()) {
      return;
    }
    if (isTogether) {
      commitTogether();
    } else {
      askBeforeCommit();
    }
  }

  /** Commits with the questions in one packet: the driver has nothing to commit then. */
  private void commitTogether() {
    try {
      List<Map<String, String>> rows = link.commit(beforeCommit(), Look.SAMPLE);
      commit = Commit.of(rows.get(0), rows.get(1));
    } catch (SQLException error) {
      boolean isLost = isLost(error);
      failed(error);
      if (!isLost) {
        asking(
            () -> {
              throw error;
            });
      } // Else the driver says so of its own commit, which a pool has to see.
    }
  }

  // After.

  @Override
  protected void afterStatements(ExecutionInfo execution) {
    Throwable error = execution.getThrowable();
    if (error != null) {
      failed(error);
      return;
    }
    stale().answered();
    if (lineages != null) {
      lineages.after(false);
    }
    ended(End.DONE, count(execution));
  }

  /** Returns how many rows the one statement changed; -1 where that is not known. */
  private static long count(ExecutionInfo execution) {
    Object result = execution.getResult();
    if (!Boolean.FALSE.equals(result)) {
      return changed(result);
    }
    try {
      return execution.getStatement().getUpdateCount();
    } catch (SQLException error) {
      return -1;
    }
  }

  @Override
  protected void afterCall(Called called, @Nullable Throwable error) {
    if (error != null) {
      failed(error);
      return;
    }
    stale().answered();
    if (lineages != null) {
      lineages.after(false);
      if (called == Called.ROLLBACK_TO) {
        lineages.wentBack();
      }
    }
    ended(End.DONE, -1);
  }

  private boolean isLost(Throwable error) {
    return !(error instanceof SQLException failure)
        || Errors.isLoss(failure)
        || link.state() == State.LOST;
  }

  private void failed(Throwable error) {
    stale().failed();
    if (lineages != null) {
      lineages.after(true);
    }
    if (isLost(error)) {
      Commit committing = commit;
      boolean isAway = session.isCalling() && !Boolean.FALSE.equals(shim.catalogue().writesAway());
      if (session.lost(committing == null ? null : committing.wrote()) || isAway) {
        shim.inDoubt("its connection was lost, or its call given up, before the reply");
      }
      sampling.over(false);
      sampling.lost();
      uncommitted(false);
    } else {
      ended(Errors.isServers(error) ? End.REFUSED : End.FAILED, -1);
    }
  }

  private void ended(End end, long count) {
    Commit committed = end == End.REFUSED ? null : commit;
    commit = null;
    sampling.over(end == End.DONE && count != 0 && session.isWriting());
    State state = link.state();
    boolean isStandby = link.isStandby();
    boolean isCalling = session.isCalling();
    Due due = session.ended(state, end, count, committed == null ? null : committed.wrote());
    uncommitted(session.isUncommitted(state));
    if (isDefining && state == State.IDLE) {
      isDefining = false;
      shim.catalogue().forget(); // Others see it from now on.
    }
    if (isStandby) {
      return; // It takes no writes.
    }
    reportUnobserved();
    sampling.take(due, committed);
    if (due == Due.EXACT && committed != null && session.temporary().isAlone()) {
      sampling.learnsLocks();
    }
    if (state == State.IDLE) {
      sampling.closes();
    } else if (isCalling && due == Due.NOTHING) {
      sampling.called(state == State.OPEN);
    }
  }

  private void uncommitted(boolean wrote) {
    Recording.recordUncommitted(shim.datastore(), session, wrote);
  }

  // The end.

  @Override
  protected void unwrapped() {
    if (unobserved == null && !link.isStandby()) {
      unobserved = new Unobserved(shim, link.backend());
    }
    reportUnobserved();
  }

  /** Lets the lineage of the request that uses the connection now ask what is written there. */
  private void reportUnobserved() {
    Unobserved seen = unobserved;
    if (seen != null) {
      Recording.deferRead(seen);
    }
  }

  @Override
  protected void beforeEnd(boolean isAlive) {
    if (lineages != null) {
      lineages.end(isAlive);
    }
    State state = link.state();
    isUncommitted = session.isUncommitted(state);
    if (isAlive && (session.mayHaveWritten(state) || (unobserved != null && state == State.OPEN))) {
      isUncommitted = sampling.isWritten();
    }
    Unobserved seen = unobserved;
    if (seen != null) {
      reportUnobserved();
      boolean isAnswering = isAlive && (state == State.IDLE || state == State.OPEN);
      seen.ends(isAnswering ? sampling.unobserved() : null);
    }
  }

  @Override
  protected void afterEnd() {
    uncommitted(false);
    if (isUncommitted) { // Pools roll it back; one that commits it reports no position.
      shim.inDoubt("its connection was given back with an open transaction");
    }
  }
}
