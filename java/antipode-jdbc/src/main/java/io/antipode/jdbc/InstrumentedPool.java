package io.antipode.jdbc;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PoolWait;
import io.antipode.barrier.Shim;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Set;
import javax.sql.DataSource;
import net.ttddyy.dsproxy.ConnectionIdManager;
import net.ttddyy.dsproxy.ConnectionInfo;
import net.ttddyy.dsproxy.proxy.ProxyConfig;
import net.ttddyy.dsproxy.proxy.ProxyJdbcObject;
import net.ttddyy.dsproxy.proxy.jdk.CallableStatementInvocationHandler;
import net.ttddyy.dsproxy.proxy.jdk.ConnectionInvocationHandler;
import net.ttddyy.dsproxy.proxy.jdk.JdkJdbcProxyFactory;
import net.ttddyy.dsproxy.proxy.jdk.PreparedStatementInvocationHandler;
import net.ttddyy.dsproxy.proxy.jdk.StatementInvocationHandler;
import net.ttddyy.dsproxy.support.ProxyDataSource;
import org.jspecify.annotations.Nullable;

/** A pool of the application's whose connections record writes and hold reads back. */
public final class InstrumentedPool {
  private static final ConnectionIdManager UNNUMBERED =
      new ConnectionIdManager() {
        @Override
        public String getId(Connection connection) {
          return "";
        }

        @Override
        public void addClosedId(String closedId) {}

        @Override
        public Set<String> getOpenConnectionIds() {
          return Set.of();
        }
      };

  private InstrumentedPool() {}

  /** Makes what observes a connection, each time that the pool lends it. */
  public interface Lending {
    /**
     * Returns what observes it.
     *
     * @param connection as the pool lends it
     * @param places of the pool, for reads that keep a connection while they wait
     */
    BorrowedConnection lend(Connection connection, Places places);
  }

  /** Returns a pool whose connections are observed, on behalf of a shim. */
  public static DataSource of(DataSource pool, Shim shim, Lending lending) {
    WaitLimits limits = new WaitLimits(pool);
    Pool instrumented = new Pool(pool, shim, limits);
    Places places = Places.of(() -> PoolProperties.size(pool));
    instrumented.setProxyConfig(
        ProxyConfig.Builder.create()
            .jdbcProxyFactory(new Connections(lending, places, limits))
            .connectionIdManager(UNNUMBERED)
            .build());
    return instrumented;
  }

  /** Returns the shim of an instrumented pool, or of that which it decorates; null for none. */
  public static @Nullable Shim shimOf(DataSource source) {
    try {
      return source.isWrapperFor(Pool.class) ? source.unwrap(Pool.class).shim : null;
    } catch (SQLException | RuntimeException error) {
      return null;
    }
  }

  /** The pool, as the application has it. */
  private static final class Pool extends ProxyDataSource {
    private final Shim shim;
    private final WaitLimits limits;

    Pool(DataSource pool, Shim shim, WaitLimits limits) {
      super(pool);
      this.shim = shim;
      this.limits = limits;
    }

    @Override
    public Connection getConnection() throws SQLException {
      return taken(shim, limits, super::getConnection);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
      return taken(shim, limits, () -> super.getConnection(user, password));
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
      return type == Pool.class || super.isWrapperFor(type);
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
      return type == Pool.class ? type.cast(this) : super.unwrap(type);
    }
  }

  private interface Taking {
    Connection take() throws SQLException;
  }

  /** Lets a read that has to wait do so before it keeps a connection for which others wait. */
  private static Connection taken(Shim shim, WaitLimits limits, Taking pool) throws SQLException {
    long startedNs = System.nanoTime();
    try {
      return PoolWait.take(
          shim,
          new PoolWait.Pool<Connection, SQLException>() {
            @Override
            public Connection take() throws SQLException {
              Connection connection = pool.take();
              borrowed(connection).waited(Duration.ofNanos(System.nanoTime() - startedNs));
              return connection;
            }

            @Override
            public Duration longest() {
              return limits.longest();
            }

            @Override
            public @Nullable Observation look(Connection connection, Floor floor) {
              return borrowed(connection).poll(floor);
            }

            @Override
            public void giveBack(Connection connection) throws SQLException {
              connection.close();
            }
          });
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new SQLException("interrupted while a barrier held the read back", error);
    }
  }

  private static BorrowedConnection borrowed(Connection connection) {
    return ((Calls) Proxy.getInvocationHandler(connection)).borrowed;
  }

  /** Makes the connections of a pool. */
  private static final class Connections extends JdkJdbcProxyFactory {
    private final Lending lending;
    private final Places places;
    private final WaitLimits limits;

    Connections(Lending lending, Places places, WaitLimits limits) {
      this.lending = lending;
      this.places = places;
      this.limits = limits;
    }

    @Override
    public Connection createConnection(
        Connection connection, ConnectionInfo info, ProxyConfig unused) {
      try {
        return lent(connection, info);
      } catch (RuntimeException error) { // A decorator's: nobody else would give it back.
        closed(connection, error);
        throw error;
      }
    }

    private static void closed(Connection connection, RuntimeException error) {
      try {
        connection.close();
      } catch (SQLException | RuntimeException again) {
        error.addSuppressed(again);
      }
    }

    private Connection lent(Connection connection, ConnectionInfo info) {
      BorrowedConnection borrowed = lending.lend(connection, places);
      borrowed.reports(limits);
      ProxyConfig config =
          ProxyConfig.Builder.create()
              .jdbcProxyFactory(new Results(borrowed))
              .connectionIdManager(UNNUMBERED)
              .queryTransformer(statement -> borrowed.sent(statement.getQuery()))
              .resultSetProxyLogicFactory(borrowed::rows)
              .generatedKeysProxyLogicFactory(borrowed::rows)
              .queryListener(borrowed)
              .methodListener(borrowed)
              .build();
      return (Connection)
          Proxy.newProxyInstance(
              ProxyJdbcObject.class.getClassLoader(),
              new Class<?>[] {ProxyJdbcObject.class, Connection.class},
              new Calls(connection, info, config, borrowed));
    }
  }

  /** Calls of a connection, whose metadata asks the server. */
  private static final class Calls extends ConnectionInvocationHandler {
    private final BorrowedConnection borrowed;

    Calls(
        Connection connection,
        ConnectionInfo info,
        ProxyConfig config,
        BorrowedConnection borrowed) {
      super(connection, info, config);
      this.borrowed = borrowed;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
        throws Throwable {
      if (method.getName().equals("getTarget")) {
        borrowed.unwraps();
      }
      Object result = super.invoke(proxy, method, args);
      return result instanceof DatabaseMetaData metadata
          ? Metadata.of(metadata, (Connection) proxy, borrowed)
          : result;
    }
  }

  /** Calls of a statement: its results lead back to it, not to the driver's. */
  private static final class StatementCalls implements InvocationHandler {
    private final InvocationHandler calls;
    private final BorrowedConnection borrowed;

    StatementCalls(InvocationHandler calls, BorrowedConnection borrowed) {
      this.calls = calls;
      this.borrowed = borrowed;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
        throws Throwable {
      if (method.getName().equals("getTarget")) {
        borrowed.unwraps();
      }
      Object result = calls.invoke(proxy, method, args);
      return result instanceof ResultSet rows
          ? LentRows.of(rows, (Statement) proxy, borrowed)
          : result;
    }
  }

  /** Observes results of one connection where they have to be. */
  private static final class Results extends JdkJdbcProxyFactory {
    private final BorrowedConnection borrowed;

    Results(BorrowedConnection borrowed) {
      this.borrowed = borrowed;
    }

    @Override
    public Statement createStatement(
        Statement statement, ConnectionInfo info, Connection connection, ProxyConfig config) {
      return lent(
          Statement.class, new StatementInvocationHandler(statement, info, connection, config));
    }

    @Override
    public PreparedStatement createPreparedStatement(
        PreparedStatement statement,
        String query,
        ConnectionInfo info,
        Connection connection,
        ProxyConfig config,
        boolean generatesKeys) {
      return lent(
          PreparedStatement.class,
          new PreparedStatementInvocationHandler(
              statement, query, info, connection, config, generatesKeys));
    }

    @Override
    public CallableStatement createCallableStatement(
        CallableStatement statement,
        String query,
        ConnectionInfo info,
        Connection connection,
        ProxyConfig config) {
      return lent(
          CallableStatement.class,
          new CallableStatementInvocationHandler(statement, query, info, connection, config));
    }

    private <T extends Statement> T lent(Class<T> type, InvocationHandler calls) {
      return type.cast(
          Proxy.newProxyInstance(
              ProxyJdbcObject.class.getClassLoader(),
              new Class<?>[] {ProxyJdbcObject.class, type},
              new StatementCalls(calls, borrowed)));
    }

    @Override
    public ResultSet createResultSet(ResultSet rows, ConnectionInfo info, ProxyConfig config) {
      return observes(rows) ? super.createResultSet(rows, info, config) : rows;
    }

    @Override
    public ResultSet createGeneratedKeys(ResultSet rows, ConnectionInfo info, ProxyConfig config) {
      return observes(rows) ? super.createGeneratedKeys(rows, info, config) : rows;
    }

    private boolean observes(ResultSet rows) {
      try {
        return borrowed.observes(rows);
      } catch (SQLException error) {
        return false;
      }
    }
  }
}
