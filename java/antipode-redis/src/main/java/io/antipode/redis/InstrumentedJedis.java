package io.antipode.redis;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PoolWait;
import io.antipode.runtime.KillSwitch;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.impl.DefaultPooledObject;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisFactory;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisSocketFactory;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * Clients of Jedis to the server of a shim: what is written by them enters the current scope, and
 * reads are held back by floors, also in pipelines and transactions. Results and errors stay
 * Jedis's. No lineage is stored with values.
 */
public final class InstrumentedJedis {
  /** A connection of no pool. */
  private static final int UNLIMITED = 0;

  private final RedisShim shim;
  private final JedisClientConfig config;
  private final JedisSocketFactory sockets;

  private InstrumentedJedis(RedisShim shim, HostAndPort address, JedisClientConfig config) {
    this.shim = shim;
    this.config = config;
    this.sockets = new DefaultJedisSocketFactory(address, config);
  }

  /**
   * Returns what makes clients; it connects to nothing yet.
   *
   * @throws io.antipode.ConfigurationException if {@code on_stale} is {@code primary} at a replica:
   *     no read of Jedis can be made elsewhere
   */
  public static InstrumentedJedis of(
      RedisShim shim, HostAndPort address, JedisClientConfig config) {
    if (!KillSwitch.isDisabled()) {
      shim.requirePrimary(false);
    }
    return new InstrumentedJedis(shim, address, config);
  }

  /** Returns one connection, for a {@code UnifiedJedis}, a {@code Pipeline} or a transaction. */
  public Connection connection() {
    return connection(Places.of(() -> UNLIMITED));
  }

  private Connection connection(Places places) {
    Connection connection =
        KillSwitch.isDisabled()
            ? new Connection(sockets, config)
            : new InstrumentedConnection(shim, sockets, config, places);
    return config.getAuthXManager() == null
        ? connection
        : config.getAuthXManager().addConnection(connection);
  }

  /** Returns a client with a connection of its own. */
  public Jedis jedis() {
    return new Jedis(connection());
  }

  /** Returns a client with a pool of Jedis' usual size. */
  public JedisPooled pooled() {
    return pooled(new ConnectionPoolConfig());
  }

  /**
   * Returns a client with a pool. A read that has to wait for what its request depends on does so
   * before it takes a connection; what cannot wait earlier keeps at most half of the pool.
   */
  public JedisPooled pooled(GenericObjectPoolConfig<Connection> pool) {
    Places places = Places.of(pool::getMaxTotal);
    ConnectionFactory factory =
        new ConnectionFactory(sockets, config) {
          @Override
          public PooledObject<Connection> makeObject() {
            return new DefaultPooledObject<>(connection(places));
          }
        };
    Taking<Connection> taking = Taking.of(connection -> connection, pool);
    return new JedisPooled(
        new PooledConnectionProvider(factory, pool) {
          @Override
          public Connection getConnection() {
            return taken(super::getConnection, taking);
          }

          @Override
          public Connection getConnection(CommandArguments command) {
            return Commands.kind(JedisTraffic.words(command)).mayRead()
                ? getConnection()
                : super.getConnection(command);
          }
        });
  }

  /** Returns a pool of clients; reads wait as those of {@link #pooled(GenericObjectPoolConfig)}. */
  public JedisPool pool(GenericObjectPoolConfig<Jedis> pool) {
    Places places = Places.of(pool::getMaxTotal);
    JedisFactory factory =
        new JedisFactory(sockets, config) {
          @Override
          public PooledObject<Jedis> makeObject() {
            return new DefaultPooledObject<>(new Jedis(connection(places)));
          }
        };
    Taking<Jedis> taking = Taking.of(Jedis::getConnection, pool);
    return new JedisPool(pool, factory) {
      @Override
      public Jedis getResource() {
        return taken(super::getResource, taking);
      }
    };
  }

  /**
   * How connections of one pool are taken.
   *
   * @param wire finds the connection of what the pool has
   * @param longest for how long the pool keeps a caller
   */
  private record Taking<C>(Function<C, Connection> wire, Duration longest) {
    static <C> Taking<C> of(Function<C, Connection> wire, GenericObjectPoolConfig<?> pool) {
      Duration wait = pool.getMaxWaitDuration();
      boolean isLimited = !wait.isNegative() && !wait.isZero();
      return new Taking<>(wire, isLimited ? wait : PoolWait.FOR_EVER);
    }
  }

  /** Takes a connection, or a client with one, once its server shows what a read must see. */
  private <C extends Closeable> C taken(Supplier<C> pool, Taking<C> taking) {
    try {
      return PoolWait.take(
          shim,
          new PoolWait.Pool<C, JedisException>() {
            @Override
            public C take() {
              return pool.get();
            }

            @Override
            public Duration longest() {
              return taking.longest;
            }

            @Override
            public @Nullable Observation look(C connection, Floor floor) {
              return taking.wire.apply(connection) instanceof InstrumentedConnection asked
                  ? asked.look(floor)
                  : null;
            }

            @Override
            public void giveBack(C connection) {
              close(connection);
            }
          });
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new JedisException("interrupted while a read waited", error);
    }
  }

  private static void close(Closeable connection) {
    try {
      connection.close();
    } catch (IOException impossible) { // Those of Jedis throw none.
      throw new UncheckedIOException(impossible);
    }
  }
}
