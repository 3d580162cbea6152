package io.antipode.jdbc;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.Shim;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.UnreachableException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
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

/**
 * A connection while the application has it: what happens before and after each of its calls.
 *
 * <p>What a database's shim makes of them is its own: it classifies the statements, asks before and
 * after them on the same connection, and knows in what transaction and snapshot they are.
 */
public abstract class BorrowedConnection
    implements QueryExecutionListener, MethodExecutionListener {
  /** Whether it is the library that unwraps a connection, in this thread; null for no. */
  private static final ThreadLocal<@Nullable Boolean> OWN = new ThreadLocal<>();

  private final Shim shim;

  /** Of the pool that lends it. */
  private final Places places;

  /** The read that waits now; null for none. */
  private volatile @Nullable HeldCall waiting;

  /** Counts the read in flight once it is answered, if it may be stale. */
  private StaleRead stale = new StaleRead();

  /** Held while the application, or the library, has a statement on the connection. */
  private final ReentrantLock using = new ReentrantLock();

  private boolean isClosed;

  /** Hears how long statements may take; null for a connection of no pool. */
  private @Nullable WaitLimits limits;

  /** How long the application was kept before it had the connection, until its first read. */
  private Duration waited = Duration.ZERO;

  /**
   * Observes a connection.
   *
   * @param shim for whose datastore reads wait
   * @param places of the pool that lends it
   */
  protected BorrowedConnection(Shim shim, Places places) {
    this.shim = shim;
    this.places = places;
  }

  // What a database makes of it.

  /** Returns the driver's own connection, on which the library asks. */
  protected abstract Connection driver();

  /** Statements of the application's are about to be sent: they may have to wait. */
  protected abstract void beforeStatements(ExecutionInfo execution, List<QueryInfo> queries);

  /** Statements were answered, with an error or without. */
  protected abstract void afterStatements(ExecutionInfo execution);

  /**
   * A call is about to be made that sends statements of the driver's own: it may have to wait.
   *
   * @param autocommit what it sets that to; null for a call that does not
   */
  protected abstract void beforeCall(Called call, @Nullable Boolean autocommit);

  /**
   * Such a call is over.
   *
   * @param error what the driver threw; null for nothing
   */
  protected abstract void afterCall(Called call, @Nullable Throwable error);

  /**
   * The application is about to give the connection back.
   *
   * @param isAlive whether the connection can still be asked
   */
  protected abstract void beforeEnd(boolean isAlive);

  /** It gave the connection back; nothing is observed from now on. */
  protected abstract void afterEnd();

  /**
   * The application is about to have an object of the driver's own that can send: the connection,
   * or what leads to it. What it does there is not observed, until it gives the connection back.
   */
  protected void unwrapped() {}

  /** Another schema is the default: what statements name may stand for others. */
  protected void renamed() {}

  /** A statement was closed, with what the application has not read of its results. */
  protected void statementClosed() {}

  /**
   * Returns what one poll on the connection shows of a floor, before a statement; null where its
   * read says why it cannot wait.
   */
  protected abstract @Nullable Observation poll(Floor floor);

  /** Returns a statement as it is sent. */
  protected String rewritten(String sql) throws SQLException {
    return sql;
  }

  /** Returns whether a result is observed: rows can be written through it, unless more is done. */
  protected boolean observes(ResultSet rows) throws SQLException {
    return rows.getConcurrency() == ResultSet.CONCUR_UPDATABLE;
  }

  /** Returns a result as the application sees it. */
  protected ResultSetProxyLogic shown(ResultSet rows, ResultSetProxyLogic plain)
      throws SQLException {
    return plain;
  }

  // What they share.

  /** Returns whether the application gave it back. */
  protected final boolean isClosed() {
    return isClosed;
  }

  /** Returns the lock of whoever has a statement on the connection. */
  protected final ReentrantLock using() {
    return using;
  }

  /** Returns what counts the read in flight once it is answered. */
  protected final StaleRead stale() {
    return stale;
  }

  /** Begins another statement or call, which counts on its own. */
  protected final StaleRead newStale() {
    stale = new StaleRead();
    return stale;
  }

  /** Asks or waits on the connection, before a read. */
  protected interface Holding {
    /**
     * Does it.
     *
     * @param call which the application can cancel meanwhile
     */
    void hold(HeldCall call) throws Exception;
  }

  /**
   * Holds a read back. What the application gets is as if its own statement had failed: unchanged
   * where its connection did.
   *
   * @param statement that reads; null for a read that has none
   */
  protected final void hold(@Nullable Statement statement, Holding holding) {
    try {
      int kept = driver().getNetworkTimeout();
      HeldCall read = new HeldCall(shim, places, statement, waited);
      waited = Duration.ZERO;
      waiting = read;
      try {
        holding.hold(read);
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

  /** Lets a pool hear how long the application lets statements take. */
  final void reports(WaitLimits pools) {
    limits = pools;
  }

  /** The application was kept for so long before it had the connection. */
  final void waited(Duration before) {
    waited = before;
  }

  /** Lets the driver wait for replies as long as the application has it. */
  protected final void restore(int networkTimeout) throws SQLException {
    if (!driver().isClosed()) {
      driver().setNetworkTimeout(Runnable::run, networkTimeout);
    }
  }

  /** Asks the server something. */
  protected interface Question {
    /** Asks. */
    void ask() throws SQLException;
  }

  /** Asks something on the connection on behalf of the application, which gets the error. */
  protected static void asking(Question question) {
    try {
      question.ask();
    } catch (SQLException error) {
      throw thrown(error);
    }
  }

  /** Returns nothing: lets a checked exception pass that the calls of JDBC declare. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <E extends Throwable> RuntimeException thrown(Throwable error) throws E {
    throw (E) error;
  }

  /** Returns how many rows a result of JDBC says were changed; -1 for one that does not say. */
  protected static long changed(@Nullable Object result) {
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

  // Calls of JDBC.

  @Override
  public final void beforeQuery(ExecutionInfo execution, List<QueryInfo> queries) {
    if (!isClosed) {
      beforeStatements(execution, queries);
    }
  }

  @Override
  public final void afterQuery(ExecutionInfo execution, List<QueryInfo> queries) {
    try {
      if (!isClosed) {
        afterStatements(execution);
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

  @Override
  public final void beforeMethod(MethodExecutionContext call) {
    if (isClosed) {
      return;
    }
    String name = call.getMethod().getName();
    if (name.equals("cancel")) {
      HeldCall read = waiting;
      if (read != null) {
        read.cancel(call.getTarget());
      }
      return;
    }
    if (isEnd(call)) {
      beforeEnd(name.equals("close"));
      return;
    }
    if (name.equals("unwrap")) {
      unwraps();
      return;
    }
    if (name.equals("setQueryTimeout") && limits != null) {
      limits.limited((Integer) call.getMethodArgs()[0]);
    }
    Called called = Called.of(call);
    if (called != null) {
      beforeCall(called, autocommit(call));
    }
  }

  private static boolean isEnd(MethodExecutionContext call) {
    String name = call.getMethod().getName();
    return call.getTarget() instanceof Connection && (name.equals("close") || name.equals("abort"));
  }

  private static @Nullable Boolean autocommit(MethodExecutionContext call) {
    boolean sets = call.getMethod().getName().equals("setAutoCommit");
    return sets ? Boolean.valueOf(Boolean.TRUE.equals(call.getMethodArgs()[0])) : null;
  }

  @Override
  public final void afterMethod(MethodExecutionContext call) {
    if (isClosed) {
      return;
    }
    if (isEnd(call)) {
      isClosed = true;
      afterEnd();
      return;
    }
    String name = call.getMethod().getName();
    if (call.getTarget() instanceof Statement && name.equals("close")) {
      statementClosed();
      return;
    }
    if (name.equals("setCatalog") || name.equals("setSchema")) {
      renamed();
      return;
    }
    Called called = Called.of(call);
    if (called != null) {
      over(called, call.getThrown());
    }
  }

  /** An object of the driver's own is about to leave that can send, or leads to one. */
  final void unwraps() {
    if (!isClosed && OWN.get() == null) {
      unwrapped();
    }
  }

  /** Returns the driver's own of a connection, for the library, which observes what it sends. */
  public static <T> T unwrapped(Connection connection, Class<T> type) throws SQLException {
    OWN.set(true);
    try {
      return connection.unwrap(type);
    } finally {
      OWN.remove();
    }
  }

  /** Something that a driver does with statements of its own. */
  interface Asked {
    Object ask() throws Throwable;
  }

  /** Does what the driver asks the server for on its own: that may take a snapshot. */
  final Object drivers(Asked question) throws Throwable {
    if (isClosed) {
      return question.ask();
    }
    beforeCall(Called.DRIVERS, null);
    try {
      Object answer = question.ask();
      over(Called.DRIVERS, null);
      return answer;
    } catch (Throwable error) {
      over(Called.DRIVERS, error);
      throw error;
    }
  }

  private void over(Called called, @Nullable Throwable error) {
    try {
      afterCall(called, error);
    } finally {
      release();
    }
  }

  /** Returns a statement as it is sent. */
  final String sent(String sql) {
    try {
      return isClosed ? sql : rewritten(sql);
    } catch (SQLException error) {
      throw thrown(error);
    }
  }

  /** Returns a result as the application sees it. */
  final ResultSetProxyLogic rows(ResultSet rows, ConnectionInfo info, ProxyConfig config) {
    try {
      return shown(rows, new SimpleResultSetProxyLogic(rows, info, config));
    } catch (SQLException error) {
      throw thrown(error);
    }
  }
}
