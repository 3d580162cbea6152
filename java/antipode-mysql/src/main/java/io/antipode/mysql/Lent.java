package io.antipode.mysql;

import io.antipode.Antipode;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.jdbc.BorrowedConnection;
import io.antipode.jdbc.Called;
import io.antipode.lineage.Lineage;
import io.antipode.mysql.Session.Due;
import io.antipode.mysql.Session.End;
import io.antipode.mysql.Session.Verdict;
import io.antipode.mysql.Transaction.Word;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.ttddyy.dsproxy.ExecutionInfo;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A connection while the application has it: what happens before and after each of its calls. */
final class Lent extends BorrowedConnection {
  private static final Logger LOG = Logger.getLogger("antipode");

  private final MySqlShim shim;
  private final Wire wire;
  private final Tap tap;
  private final Session session;

  /** Asks on the driver's own connection, past pools and listeners. */
  private Link link;

  /** Stores lineages with rows; null where nothing does. */
  private final @Nullable Beside beside;

  /** What the statement in flight may do. */
  private Set<Effect> flight = Set.of();

  /** Whether the application reads a reply piece by piece: what it ends with is not known yet. */
  private boolean isStreamed;

  /** That reply, where it may report a write. */
  private Tap.@Nullable Unread unread;

  /** What the open transaction may have left that no rollback undoes. */
  private final PutOff putOff;

  private boolean isUncommitted;

  /** Whether the application has changed the default schema. */
  private boolean isRenamed;

  Lent(
      MySqlShim shim,
      Wire wire,
      Function<Wire, Tap> taps,
      @Nullable Migrated migrated,
      Places places) {
    super(shim, places);
    this.shim = shim;
    this.wire = wire;
    this.tap = taps.apply(wire);
    this.session = tap.session();
    this.link = Link.on(wire.connection(), tap.facts());
    this.putOff = new PutOff(shim, using(), this::askLasting);
    this.beside = migrated == null ? null : new Beside(shim, wire, tap, migrated);
    try {
      session.lent(wire.connection().getAutoCommit(), wire.word());
    } catch (SQLException error) {
      session.lent(false, Word.SILENT);
    }
    clarify();
    prepare();
  }

  /** Asks what the session is in, where nobody knows. */
  private void clarify() {
    if (!session.transaction().isUnsure() || wire instanceof Wire.Unknown) {
      return;
    }
    try {
      link.execute(Link.NOTHING);
      session.told(wire.wholeWord());
    } catch (SQLException error) {
      LOG.log(Level.FINE, error, () -> "what a session is in stays unknown");
    }
  }

  /** Finds out about the server, and lets it name commits; once for each session. */
  private void prepare() {
    if (tap.isReady()) {
      return;
    }
    try {
      Facts facts = link.aside(session, link::asked);
      shim.runs().learn(facts.executed(), facts.groupBlock());
      if (facts.flavor() == Flavor.MYSQL && facts.problems().isEmpty()) {
        if (!tap.isTracked()) {
          tap.listens(wire.listen(tap::gtids));
        }
        if (tap.isTracked()) {
          link.execute(Link.TRACK);
        }
      }
      tap.knows(facts, trouble());
    } catch (SQLException | RefusedException error) {
      Counts.logOnce(
          "mysql_unasked",
          shim.datastore(),
          "",
          () ->
              "the server of a connection to "
                  + shim.datastore()
                  + " does not say what it is: "
                  + error.getMessage());
    }
  }

  private String trouble() throws SQLException {
    if (wire instanceof Wire.Unknown) {
      return "its driver is neither Connector/J nor MariaDB's";
    }
    String url = String.valueOf(wire.connection().getMetaData().getURL());
    if (Reach.isOne(url)) {
      return "";
    }
    shim.readsFromSeveral();
    return Reach.SEVERAL;
  }

  // Statements.

  @Override
  protected Connection driver() {
    return wire.connection();
  }

  @Override
  protected void beforeStatements(ExecutionInfo execution, List<QueryInfo> queries) {
    settleStream();
    prepare();
    flight = effects(execution, queries);
    await(flight, execution.getStatement());
    if (tap.mayHide(flight)) {
      asking(() -> tap.seeViews(queries, flight, link::rows));
    }
    if (flight.contains(Effect.CALLS)) {
      flight.add(Effect.WRITES); // To barriers it is a read all the same.
    }
    if (beside != null) {
      Beside rows = beside;
      asking(() -> rows.before(execution.getStatement(), queries, flight));
    }
    using().lock();
    tap.starts(flight, Known.UNKNOWN);
  }

  @Override
  protected String rewritten(String sql) throws SQLException {
    return beside == null ? sql : beside.reading(sql);
  }

  @Override
  protected boolean observes(ResultSet rows) throws SQLException {
    return super.observes(rows) || (beside != null && ShownRows.hidden(rows) > 0);
  }

  @Override
  protected ResultSetProxyLogic shown(ResultSet rows, ResultSetProxyLogic plain)
      throws SQLException {
    int hidden = beside == null ? 0 : ShownRows.hidden(rows);
    return beside == null || hidden == 0 ? plain : beside.rows(rows, hidden, plain);
  }

  private Set<Effect> effects(ExecutionInfo execution, List<QueryInfo> queries) {
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    for (QueryInfo query : queries) {
      String sql = query.getQuery().strip();
      Set<Effect> one = Statements.effects(sql.startsWith("{") ? "CALL " + sql : sql);
      if (one.contains(Effect.CALLS) && !tap.mayWrite(sql)) {
        one.remove(Effect.CALLS);
      }
      found.addAll(one);
    }
    if (execution.isBatch()) {
      found.add(Effect.SEVERAL);
      found.remove(Effect.LOCKS); // Which of them reads it does not say.
    }
    return onServer(found);
  }

  /** Returns what a server of its flavor does. */
  private Set<Effect> onServer(Set<Effect> effects) {
    Facts facts = tap.facts();
    if (facts == null || facts.flavor() == Flavor.MYSQL) {
      return effects;
    }
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    found.addAll(effects);
    found.remove(Effect.MAY_SNAPSHOT); // MariaDB shows its tables without reading any.
    return found;
  }

  /** Holds back what reads, or may take the snapshot from which others read, as barriers demand. */
  private void await(Set<Effect> effects, @Nullable Statement statement) {
    StaleRead stale = newStale();
    boolean reads = effects.contains(Effect.READS);
    boolean writes = effects.contains(Effect.WRITES);
    boolean mayOpen =
        effects.contains(Effect.MAY_SNAPSHOT)
            || effects.contains(Effect.SNAPSHOT)
            || (writes && !effects.contains(Effect.ENDS));
    Transaction transaction = session.transaction();
    if (!reads && !(mayOpen && (transaction.isFresh() || transaction.isUnsure()))) {
      return;
    }
    boolean isRead = reads && (!writes || effects.contains(Effect.COMMITS));
    Floor floor = isRead ? Floor.current(shim, tap, stale) : Floor.currentAgain(shim, stale);
    if (floor == null) {
      return;
    }
    clarify();
    if (reads || session.transaction().isFresh()) {
      hold(floor, effects, statement);
    }
  }

  private void hold(Floor floor, Set<Effect> effects, @Nullable Statement statement) {
    Facts facts = tap.require();
    Verdict verdict = session.judge(floor, effects);
    if (verdict == Verdict.PASS) {
      floor.pass();
      return;
    }
    link = Link.on(wire.connection(), facts);
    hold(statement, call -> new ReadWait(shim, tap, link, call).hold(floor, verdict));
  }

  @Override
  protected @Nullable Observation poll(Floor floor) {
    Facts facts = tap.facts();
    boolean isKnown = facts != null && floor.promises().isEmpty();
    if (!isKnown || session.judge(floor, EnumSet.of(Effect.READS)) != Verdict.HOLD) {
      return null;
    }
    link = Link.on(wire.connection(), facts);
    try {
      int kept = wire.connection().getNetworkTimeout();
      try {
        Observation shown = shim.look(link, floor.writes(), List.of(), floor.pollTimeout());
        if (floor.writes().stream().allMatch(each -> shown.status(each) == Status.VISIBLE)) {
          session.passed(floor, shown, false);
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
  protected void afterStatements(ExecutionInfo execution) {
    Throwable error = execution.getThrowable();
    if (error != null) {
      failed(error);
      return;
    }
    stale().answered();
    if (beside != null) {
      beside.after();
    }
    Object result = execution.getResult();
    boolean hasRows = result instanceof ResultSet || Boolean.TRUE.equals(result);
    if (hasRows && wire.isStreaming(execution.getStatement())) {
      isStreamed = true;
      if (session.isDoubtful()) {
        unread = new Tap.Unread(shim);
        Recording.deferRead(unread);
      }
      return;
    }
    // Whether a count of changed rows is that of all that was done.
    boolean tells =
        !flight.contains(Effect.COMMITS)
            && (execution.isBatch() || !flight.contains(Effect.SEVERAL));
    ended(End.DONE, tells ? changed(result) : -1, 0, wire.word());
  }

  // Other calls.

  @Override
  protected void unwrapped() {
    if (!tap.isTracked()) { // Else replies say so, whoever sent.
      putOff.unwrapped();
      reportUnwrapped();
    }
  }

  private void reportUnwrapped() {
    if (putOff.isUnwrapped()) {
      putOff();
    }
  }

  @Override
  protected void beforeEnd(boolean isAlive) {
    settleStream();
    reportUnwrapped();
    if (beside != null) {
      beside.settle(isAlive);
    }
    if (isAlive && putOff.isUnwrapped()) {
      seeUnwrapped();
    }
    isUncommitted = session.transaction().isUncommitted();
    putOff.settle(isAlive);
  }

  /** Asks what the session is in that the application had to itself. */
  private void seeUnwrapped() {
    Word word = Word.SILENT;
    try {
      link.execute(Link.NOTHING);
      word = wire.wholeWord();
    } catch (SQLException error) {
      LOG.log(Level.FINE, error, () -> "what a session is in stays unknown");
    }
    session.unseen(word);
  }

  @Override
  protected void beforeCall(Called called, @Nullable Boolean autocommit) {
    if (called == Called.ROW_WRITE && beside != null) {
      asking(beside::beforeRow);
    }
    settleStream();
    flight = onServer(Statements.effects(called));
    await(flight, null);
    using().lock();
    tap.starts(flight, autocommit == null ? Known.UNKNOWN : Known.of(autocommit));
  }

  @Override
  protected void afterEnd() {
    uncommitted(false);
    if (isRenamed) {
      tap.renamed(false); // Its pool makes the first schema the default again.
    }
    // A pool may commit what is open, and a driver that reports positions reports that, too.
    if (isUncommitted && !tap.isTracked()) {
      Recording.markIncomplete(shim.datastore(), "in_doubt");
    }
  }

  @Override
  protected void renamed() {
    tap.renamed(false);
    isRenamed = true;
  }

  @Override
  protected void statementClosed() {
    settleStream();
  }

  @Override
  protected void afterCall(Called called, @Nullable Throwable error) {
    if (error == null) {
      stale().answered();
      ended(End.DONE, -1, 0, called.isAnswered() ? wire.word() : Word.SILENT);
    } else {
      failed(error);
    }
  }

  // What follows.

  private void failed(Throwable error) {
    stale().failed();
    if (!(error instanceof SQLException failure)) {
      ended(End.FAILED, -1, 0, Word.SILENT);
    } else if (isLost(failure)) {
      if (beside != null) {
        beside.lost();
      }
      uncommitted(false);
      putOff.settle(false);
      if (session.lost()) {
        Recording.markIncomplete(shim.datastore(), "in_doubt");
      }
    } else {
      End end = Errors.isRefusal(failure) ? End.REFUSED : End.FAILED;
      ended(end, -1, failure.getErrorCode(), Word.SILENT);
    }
  }

  private boolean isLost(SQLException error) {
    try {
      return Errors.isLoss(error) || wire.connection().isClosed();
    } catch (SQLException closed) {
      return true;
    }
  }

  private void ended(End end, long count, int number, Word word) {
    if (end == End.DONE && session.isUndoing() && wire.hasWarnings()) {
      session.warned();
    }
    Due due = session.ended(end, count, number, word);
    uncommitted(session.transaction().isUncommitted());
    if (due == Due.UNCOVERED) {
      tap.uncovered("it is prepared for anybody to commit, or it is not logged with a number");
    } else if (due == Due.LASTING) {
      putOff();
    } else if (due != Due.NOTHING) {
      sample(due == Due.SAMPLE);
    }
    if (due == Due.UNCOVERED || !session.transaction().isUncommitted()) {
      putOff.ended();
    }
    reportUnwrapped();
    if (end == End.DONE) {
      tap.raisePending();
    }
  }

  private void uncommitted(boolean wrote) {
    Recording.recordUncommitted(shim.datastore(), tap, wrote);
  }

  /**
   * Asks for the position of a write.
   *
   * @param isCertain whether something was written
   */
  private void sample(boolean isCertain) {
    String sql = tap.sample();
    if (sql == null) {
      return;
    }
    try {
      if (isCertain || hasCommitted()) {
        tap.sampled(link.rows(sql).get(0), isCertain);
      }
    } catch (SQLException error) {
      shim.unsampled(String.valueOf(error.getMessage()));
    }
  }

  /** Asks later what the open transaction may have left, if the lineage is used before its end. */
  private void putOff() {
    if (tap.canSample()) { // Else its end says what is missing.
      putOff.ask();
    }
  }

  private Lineage askLasting() {
    try (ScopeBlock own = Antipode.scope()) {
      if (isStreamed) {
        shim.unsampled("a reply on its connection is not read to its end");
      } else {
        sample(false);
      }
      return own.scope().lineage();
    }
  }

  /**
   * Returns whether the session may have committed something that no reply reported: MySQL says so
   * of what it did before an error, and before rows.
   */
  private boolean hasCommitted() throws SQLException {
    if (!tap.isTracked() || !session.isProved()) {
      return true;
    }
    if (wire.hasChanged()) {
      return true; // The reply to a rollback says so of what failed before.
    }
    link.execute(Link.NOTHING);
    return wire.hasChanged();
  }

  /** Ends a reply that was read piece by piece. */
  private void settleStream() {
    if (!isStreamed) {
      return;
    }
    isStreamed = false;
    Tap.Unread read = unread;
    unread = null;
    ended(End.DONE, -1, 0, Word.SILENT); // Its last word may have come, or not.
    if (read != null) {
      read.end();
    }
  }
}
