package io.antipode.mysql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PoolWait;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
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
final class Instrumented extends JdkJdbcProxyFactory {
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

  private final MySqlShim shim;

  /** The tables with whose rows lineages are stored; null for none. */
  private final @Nullable Migrated migrated;

  /** What is known of the drivers' connections. A pool lends them again and again. */
  private final Map<Connection, Tap> taps = Collections.synchronizedMap(new WeakHashMap<>());

  private final Places places;

  private Instrumented(MySqlShim shim, @Nullable Migrated migrated, DataSource pool) {
    this.shim = shim;
    this.migrated = migrated;
    this.places = Places.of(() -> Reach.size(pool));
  }

  static DataSource of(DataSource pool, MySqlShim shim, @Nullable Migrated migrated) {
    if (Reach.isSeveral(pool)) {
      shim.readsFromSeveral();
    }
    Pool instrumented = new Pool(pool, shim);
    instrumented.setProxyConfig(
        ProxyConfig.Builder.create()
            .jdbcProxyFactory(new Instrumented(shim, migrated, pool))
            .connectionIdManager(UNNUMBERED)
            .build());
    return instrumented;
  }

  /** Returns the shim of an instrumented pool, or of that which it decorates; null for none. */
  static @Nullable MySqlShim shimOf(DataSource source) {
    try {
      return source.isWrapperFor(Pool.class) ? source.unwrap(Pool.class).shim : null;
    } catch (SQLException | RuntimeException error) {
      return null;
    }
  }

  /** The pool, as the application has it. */
  private static final class Pool extends ProxyDataSource {
    private final MySqlShim shim;

    Pool(DataSource pool, MySqlShim shim) {
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
  private static Connection taken(MySqlShim shim, Taking pool) throws SQLException {
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
              return ((Calls) Proxy.getInvocationHandler(connection)).lent.look(floor);
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
    Lent lent = new Lent(shim, wire(connection), this::tap, migrated, places);
    ProxyConfig config =
        ProxyConfig.Builder.create()
            .jdbcProxyFactory(this)
            .connectionIdManager(UNNUMBERED)
            .queryTransformer(statement -> lent.sent(statement.getQuery()))
            .resultSetProxyLogicFactory(lent::rows)
            .queryListener(lent)
            .methodListener(lent)
            .build();
    return (Connection)
        Proxy.newProxyInstance(
            ProxyJdbcObject.class.getClassLoader(),
            new Class<?>[] {ProxyJdbcObject.class, Connection.class},
            new Calls(connection, info, config, lent));
  }

  /** Calls of a connection, whose metadata asks the server. */
  private static final class Calls extends ConnectionInvocationHandler {
    private final Lent lent;

    Calls(Connection connection, ConnectionInfo info, ProxyConfig config, Lent lent) {
      super(connection, info, config);
      this.lent = lent;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
        throws Throwable {
      Object result = super.invoke(proxy, method, args);
      return result instanceof DatabaseMetaData metadata
          ? Metadata.of(metadata, (Connection) proxy, lent)
          : result;
    }
  }

  private static Wire wire(Connection connection) {
    try {
      return Wire.of(connection);
    } catch (SQLException | RuntimeException error) {
      return new Wire.Unknown(connection);
    }
  }

  private Tap tap(Wire wire) {
    return taps.computeIfAbsent(wire.connection(), unused -> new Tap(shim));
  }

  /** Results are observed whose rows can be written through, or have lineages. */
  @Override
  public ResultSet createResultSet(ResultSet rows, ConnectionInfo info, ProxyConfig config) {
    try {
      boolean isWritable = rows.getConcurrency() == ResultSet.CONCUR_UPDATABLE;
      return isWritable || (migrated != null && ShownRows.hidden(rows) > 0)
          ? super.createResultSet(rows, info, config)
          : rows;
    } catch (SQLException error) {
      return rows;
    }
  }
}
