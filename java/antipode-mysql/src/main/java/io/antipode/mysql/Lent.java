package io.antipode.mysql;

import io.antipode.Antipode;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
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
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import net.ttddyy.dsproxy.ConnectionInfo;
import net.ttddyy.dsproxy.ExecutionInfo;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.listener.MethodExecutionContext;
import net.ttddyy.dsproxy.listener.MethodExecutionListener;
import net.ttddyy.dsproxy.listener.QueryExecutionListener;
import net.ttddyy.dsproxy.proxy.ProxyConfig;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import net.ttddyy.dsproxy.proxy.SimpleResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A connection while the application has it: what happens before and after each of its calls. */
final class Lent implements QueryExecutionListener, MethodExecutionListener {
  private static final Logger LOG = Logger.getLogger("antipode");

  private final MySqlShim shim;
  private final Wire wire;
  private final Tap tap;
  private final Session session;

  /** Asks on the driver's own connection, past pools and listeners. */
  private Link link;

  /** Stores lineages with rows; null where nothing does. */
  private final @Nullable Beside beside;

  /** Of the pool that lends it. */
  private final Places places;

  /** The read that waits now; null for none. */
  private volatile @Nullable ReadWait waiting;

  /** Counts the read in flight once it is answered, if it may be stale. */
  private StaleRead stale = new StaleRead();

  /** What the statement in flight may do. */
  private Set<Effect> flight = Set.of();

  /** Whether the application reads a reply piece by piece: what it ends with is not known yet. */
  private boolean isStreamed;

  /** That reply, where it may report a write. */
  private Tap.@Nullable Unread unread;

  /** Held while the application, or the library, has a statement on the connection. */
  private final ReentrantLock using = new ReentrantLock();

  /** What the open transaction may have left that no rollback undoes; null for nothing. */
  private volatile @Nullable Lasting lasting;

  private boolean isUncommitted;
  private boolean isClosed;

  Lent(
      MySqlShim shim,
      Wire wire,
      Function<Wire, Tap> taps,
      @Nullable Migrated migrated,
      Places places) {
    this.shim = shim;
    this.places = places;
    this.wire = wire;
    this.tap = taps.apply(wire);
    this.session = tap.session();
    this.link = Link.on(wire.connection(), tap.facts());
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
  public void beforeQuery(ExecutionInfo execution, List<QueryInfo> queries) {
    if (isClosed) {
      return;
    }
    settleStream();
    prepare();
    flight = effects(execution, queries);
    await(flight, execution.getStatement());
    if (flight.contains(Effect.CALLS)) {
      flight.add(Effect.WRITES); // To barriers it is a read all the same.
    }
    if (beside != null) {
      Beside rows = beside;
      asking(() -> rows.before(execution.getStatement(), queries, flight));
    }
    using.lock();
    tap.starts(flight, Known.UNKNOWN);
  }

  private interface Question {
    void ask() throws SQLException;
  }

  /** Asks something on the connection on behalf of the application, which gets the error. */
  private static void asking(Question question) {
    try {
      question.ask();
    } catch (SQLException error) {
      throw thrown(error);
    }
  }

  /** Returns a statement as it is sent. */
  String sent(String sql) {
    try {
      return beside == null || isClosed ? sql : beside.reading(sql);
    } catch (SQLException error) {
      throw thrown(error);
    }
  }

  /** Returns a result as the application sees it. */
  ResultSetProxyLogic rows(ResultSet rows, ConnectionInfo info, ProxyConfig config) {
    ResultSetProxyLogic plain = new SimpleResultSetProxyLogic(rows, info, config);
    try {
      int hidden = beside == null ? 0 : ShownRows.hidden(rows);
      return beside == null || hidden == 0 ? plain : beside.rows(rows, hidden, plain);
    } catch (SQLException error) {
      throw thrown(error);
    }
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
    stale = new StaleRead();
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
    try {
      int kept = wire.connection().getNetworkTimeout();
      ReadWait read = new ReadWait(shim, tap, link, places, statement);
      waiting = read;
      try {
        read.hold(floor, verdict);
      } finally {
        waiting = null;
        restore(kept);
      }
    } catch (UnreachableException error) {
      // This connection's own: the application gets its driver's error, as without the library.
      throw thrown(error.getCause() instanceof SQLException own ? own : error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw thrown(new SQLException("interrupted while a barrier held the read back", error));
    } catch (Exception error) {
      throw thrown(error);
    }
  }

  /** Looks once for a floor, before a statement; null where its read says why it cannot wait. */
  @Nullable Observation look(Floor floor) {
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

  private void restore(int timeout) throws SQLException {
    if (!wire.connection().isClosed()) {
      wire.connection().setNetworkTimeout(Runnable::run, timeout);
    }
  }

  /** Returns nothing: lets a checked exception pass that the calls of JDBC declare. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <E extends Throwable> RuntimeException thrown(Throwable error) throws E {
    throw (E) error;
  }

  @Override
  public void afterQuery(ExecutionInfo execution, List<QueryInfo> queries) {
    try {
      if (!isClosed) {
        answered(execution);
      }
    } finally {
      release();
    }
  }

  private void release() {
    if (using.isHeldByCurrentThread()) {
      using.unlock();
    }
  }

  private void answered(ExecutionInfo execution) {
    Throwable error = execution.getThrowable();
    if (error != null) {
      failed(error);
      return;
    }
    stale.answered();
    if (beside != null) {
      beside.after();
    }
    Object result = execution.getResult();
    boolean hasRows = result instanceof ResultSet || Boolean.TRUE.equals(result);
    if (hasRows && isStreaming(execution.getStatement())) {
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
    ended(End.DONE, tells ? changed(result) : -1, 0, word());
  }

  private boolean isStreaming(Statement statement) {
    try {
      return wire.isStreaming(statement);
    } catch (SQLException error) {
      return false;
    }
  }

  private static long changed(@Nullable Object result) {
    if (result instanceof Number count) {
      return count.longValue();
    }
    if (result instanceof int[] counts) {
      return IntStream.of(counts).filter(count -> count != 0).count();
    }
    if (result instanceof long[] counts) {
      return LongStream.of(counts).filter(count -> count != 0).count();
    }
    return -1;
  }

  // Other calls.

  @Override
  public void beforeMethod(MethodExecutionContext call) {
    if (isClosed) {
      return;
    }
    String name = call.getMethod().getName();
    if (name.equals("cancel")) {
      ReadWait read = waiting;
      if (read != null) {
        read.cancel(call.getTarget());
      }
      return;
    }
    if (call.getTarget() instanceof Connection && isEnd(name)) {
      settleStream();
      if (beside != null) {
        beside.settle(name.equals("close"));
      }
      isUncommitted = session.transaction().isUncommitted();
      settleLasting(name.equals("close"));
      return;
    }
    Called called = Called.of(call);
    if (called == null) {
      return;
    }
    if (called == Called.ROW_WRITE && beside != null) {
      asking(beside::beforeRow);
    }
    before(called.effects(), autocommit(call));
  }

  private static boolean isEnd(String name) {
    return name.equals("close") || name.equals("abort");
  }

  private static Known autocommit(MethodExecutionContext call) {
    boolean sets = call.getMethod().getName().equals("setAutoCommit");
    return sets ? Known.of(Boolean.TRUE.equals(call.getMethodArgs()[0])) : Known.UNKNOWN;
  }

  private void before(Set<Effect> effects, Known autocommit) {
    settleStream();
    flight = onServer(effects);
    await(flight, null);
    using.lock();
    tap.starts(flight, autocommit);
  }

  @Override
  public void afterMethod(MethodExecutionContext call) {
    if (isClosed) {
      return;
    }
    String name = call.getMethod().getName();
    if (call.getTarget() instanceof Connection && isEnd(name)) {
      isClosed = true;
      uncommitted(false);
      // A pool may commit what is open, and a driver that reports positions reports that, too.
      if (isUncommitted && !tap.isTracked()) {
        Recording.markIncomplete(shim.datastore(), "in_doubt");
      }
    } else if (call.getTarget() instanceof Statement && name.equals("close")) {
      settleStream();
    } else {
      Called called = Called.of(call);
      if (called != null) {
        over(call.getThrown(), called.isAnswered() ? word() : Word.SILENT);
      }
    }
  }

  /** Something that a driver does with statements of its own. */
  interface Asked {
    Object ask() throws Throwable;
  }

  /** Does what the driver asks the server for on its own: that may take a snapshot. */
  Object drivers(Asked question) throws Throwable {
    if (isClosed) {
      return question.ask();
    }
    before(Called.DRIVERS.effects(), Known.UNKNOWN);
    try {
      Object answer = question.ask();
      over(null, Word.SILENT);
      return answer;
    } catch (Throwable error) {
      over(error, Word.SILENT);
      throw error;
    }
  }

  private void over(@Nullable Throwable error, Word word) {
    try {
      if (error == null) {
        stale.answered();
        ended(End.DONE, -1, 0, word);
      } else {
        failed(error);
      }
    } finally {
      release();
    }
  }

  // What follows.

  private void failed(Throwable error) {
    stale.failed();
    if (!(error instanceof SQLException failure)) {
      ended(End.FAILED, -1, 0, Word.SILENT);
    } else if (isLost(failure)) {
      if (beside != null) {
        beside.lost();
      }
      uncommitted(false);
      settleLasting(false);
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

  private Word word() {
    try {
      return wire.word();
    } catch (SQLException error) {
      return Word.SILENT;
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
    Lasting held = lasting;
    if (held != null && (due == Due.UNCOVERED || !session.transaction().isUncommitted())) {
      held.ended();
    }
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
    if (!tap.canSample()) {
      return; // Its end says what is missing.
    }
    Lasting held = lasting;
    if (held == null || held.isSettled()) {
      held = new Lasting(shim, using, this::askLasting);
      lasting = held;
    }
    Recording.deferRead(held);
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

  /** Asks for what was put off, before somebody else gets the connection. */
  private void settleLasting(boolean isAlive) {
    Lasting held = lasting;
    if (held != null && isAlive) {
      Lineage unused = held.get();
    } else if (held != null) {
      held.lost();
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
