package io.antipode.jdbc;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PoolWait;
import io.antipode.barrier.Shim;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;
import javax.sql.DataSource;
import net.ttddyy.dsproxy.ConnectionIdManager;
import net.ttddyy.dsproxy.ConnectionInfo;
import net.ttddyy.dsproxy.proxy.ProxyConfig;
import net.ttddyy.dsproxy.proxy.ProxyJdbcObject;
import net.ttddyy.dsproxy.proxy.jdk.ConnectionInvocationHandler;
import net.ttddyy.dsproxy.proxy.jdk.JdkJdbcProxyFactory;
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
    Pool instrumented = new Pool(pool, shim);
    Places places = Places.of(() -> PoolProperties.size(pool));
    instrumented.setProxyConfig(
        ProxyConfig.Builder.create()
            .jdbcProxyFactory(new Connections(lending, places))
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

    Pool(DataSource pool, Shim shim) {
      super(pool);
      this.shim = shim;
    }

    @Override
    public Connection getConnection() throws SQLException {
      return taken(shim, super::getConnection);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
      return taken(shim, () -> super.getConnection(user, password));
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
  private static Connection taken(Shim shim, Taking pool) throws SQLException {
    try {
      return PoolWait.take(
          shim,
          new PoolWait.Pool<Connection, SQLException>() {
            @Override
            public Connection take() throws SQLException {
              return pool.take();
            }

            @Override
            public @Nullable Observation look(Connection connection, Floor floor) {
              return ((Calls) Proxy.getInvocationHandler(connection)).borrowed.poll(floor);
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

  /** Makes the connections of a pool. */
  private static final class Connections extends JdkJdbcProxyFactory {
    private final Lending lending;
    private final Places places;

    Connections(Lending lending, Places places) {
      this.lending = lending;
      this.places = places;
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
      Object result = super.invoke(proxy, method, args);
      return result instanceof DatabaseMetaData metadata
          ? Metadata.of(metadata, (Connection) proxy, borrowed)
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
