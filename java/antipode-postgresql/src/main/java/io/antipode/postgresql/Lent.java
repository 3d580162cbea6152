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
import io.antipode.lineage.Lineage;
import io.antipode.postgresql.Link.State;
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
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import net.ttddyy.dsproxy.ExecutionInfo;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A connection while the application has it: what happens before and after each of its calls. */
final class Lent extends BorrowedConnection {
  /** What the driver says of a statement that was cancelled. */
  private static final HeldCall.Interrupted INTERRUPTED = new HeldCall.Interrupted("57014", 0);

  private static final Set<String> COMMITTED_READS = Set.of("read committed", "read uncommitted");

  private final PostgreSqlShim shim;
  private final Link link;
  private final Session session;

  /** Stores lineages with rows; null where nothing does. */
  private final @Nullable RowLineages lineages;

  /** What observes the result that the application is about to get; null for nothing. */
  private RowLineages.@Nullable Shown seen;

  /** What the statements in flight read, in small letters; empty where they do more. */
  private String read = "";

  /** What came before and with the commit in flight; null where nobody asked. */
  private @Nullable Commit commit;

  private boolean isUncommitted;

  /** Whether the application may have written on the driver's connection, unobserved. */
  private boolean isUnwrapped;

  /**
   * What is known of a commit.
   *
   * @param wrote whether the transaction had an id, which each has that writes
   * @param isFlushed whether the commit waits until it is flushed
   * @param sample the answer to {@link Look#SAMPLE}; null where it did not come with it
   */
  private record Commit(boolean wrote, boolean isFlushed, @Nullable Map<String, String> sample) {
    static Commit of(Map<String, String> asked, @Nullable Map<String, String> sample) {
      boolean wrote = !asked.getOrDefault("xid", "").isEmpty();
      return new Commit(wrote, Look.isFlushed(asked), sample);
    }
  }

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
    for (QueryInfo query : queries) {
      String sql = query.getQuery();
      boolean isEscape = sql.stripLeading().startsWith("{"); // A call, as JDBC writes it.
      Set<Effect> one = Statements.effects(isEscape ? "CALL" : sql, shim.readonlyFunctions());
      if (one.contains(Effect.CALLS) && !one.contains(Effect.WRITES)) {
        shim.unknownFunctions(Statements.unknownFunctions(sql, shim.readonlyFunctions()));
      }
      if (one.contains(Effect.WRITES) && changesSchema(sql)) {
        shim.hidden().forget();
      }
      effects.addAll(one);
      texts.append(sql).append(';');
    }
    if (execution.isBatch() || queries.size() > 1) {
      effects.add(Effect.SEVERAL);
    }
    before(effects, texts.toString(), execution.getStatement());
    RowLineages rows = lineages;
    if (rows != null) {
      String sql = texts.toString();
      Sent call = new Sent(sql, effects, rows.mentions(sql), Sent.parameters(queries));
      asking(() -> rows.before(call, execution.getStatement()));
    }
    if (session.isCommitting()) {
      asking(() -> commit = Commit.of(link.ask(Look.BEFORE_COMMIT).get(0), null));
    }
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

  private static boolean changesSchema(String sql) {
    String text = sql.stripLeading();
    return text.regionMatches(true, 0, "CREATE", 0, 6)
        || text.regionMatches(true, 0, "ALTER", 0, 5);
  }

  /** Holds back what reads, or begins a transaction in which others read, as barriers demand. */
  private void before(Set<Effect> effects, String texts, @Nullable Statement statement) {
    State state = link.state();
    session.starts(effects, state);
    commit = null;
    read = effects.equals(EnumSet.of(Effect.READS)) ? texts.toLowerCase(Locale.ROOT) : "";
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
    before(isNothing ? Set.of() : Statements.effects(called), "", null);
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
      asking(() -> commit = Commit.of(link.ask(Look.BEFORE_COMMIT).get(0), null));
    }
  }

  /** Commits with the questions in one packet: the driver has nothing to commit then. */
  private void commitTogether() {
    try {
      List<Map<String, String>> rows = link.commit(Look.BEFORE_COMMIT, Look.SAMPLE);
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
      if (session.lost(committing == null ? null : committing.wrote)) {
        shim.inDoubt("its connection was lost, or its call given up, before the reply");
      }
      uncommitted(false);
    } else {
      ended(Errors.isServers(error) ? End.REFUSED : End.FAILED, -1);
    }
  }

  private void ended(End end, long count) {
    Commit committed = end == End.REFUSED ? null : commit;
    commit = null;
    State state = link.state();
    boolean isStandby = link.isStandby();
    Due due = session.ended(state, end, count, committed == null ? null : committed.wrote);
    uncommitted(session.isUncommitted(state));
    if (isStandby) {
      return; // It takes no writes.
    }
    switch (due) {
      case NOTHING -> {}
      case IN_DOUBT -> shim.inDoubt("it is prepared for anybody to commit");
      case HIDDEN -> hidden();
      case EXACT -> sample(committed, true);
      case COVERING -> sample(committed, false);
    }
  }

  private void uncommitted(boolean wrote) {
    Recording.recordUncommitted(shim.datastore(), session, wrote);
  }

  /** Asks what a view may have written that was read. */
  private void hidden() {
    if (!read.isEmpty() && shim.hidden().mayHaveWritten(link, read)) {
      sample(null, false);
    }
  }

  private void sample(@Nullable Commit committed, boolean isExact) {
    try {
      Map<String, String> row =
          committed == null || committed.sample == null
              ? link.ask(Look.SAMPLE).get(0)
              : committed.sample;
      boolean isFlushed = committed == null ? Look.isFlushed(row) : committed.isFlushed;
      Supplier<Lineage> unused = shim.sampled(link, row, isExact, isFlushed);
    } catch (SQLException error) {
      Lineage unused = shim.unsampled(String.valueOf(error.getMessage()));
    }
  }

  // The end.

  @Override
  protected void unwrapped() {
    isUnwrapped = true;
  }

  @Override
  protected void beforeEnd(boolean isAlive) {
    if (lineages != null) {
      lineages.end(isAlive);
    }
    State state = link.state();
    isUncommitted = session.isUncommitted(state);
    if (isAlive && isUnwrapped && state == State.IDLE && !link.isStandby()) {
      sample(null, false);
    }
    if (isAlive && session.mayHaveWritten(state)) {
      try {
        isUncommitted = Commit.of(link.ask(Look.BEFORE_COMMIT).get(0), null).wrote;
      } catch (SQLException error) {
        isUncommitted = true;
      }
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
