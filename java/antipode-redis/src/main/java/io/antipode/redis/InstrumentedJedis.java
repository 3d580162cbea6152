package io.antipode.redis;

import io.antipode.runtime.KillSwitch;
import java.util.function.Supplier;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.PooledObjectFactory;
import org.apache.commons.pool2.impl.DefaultPooledObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisFactory;
import redis.clients.jedis.JedisSocketFactory;

/**
 * Clients of Jedis to the server of a shim: what is written by them enters the current scope, and
 * reads are held back by floors, also in pipelines and transactions. Results and errors stay
 * Jedis's. No lineage is stored with values.
 */
public final class InstrumentedJedis {
  private final JedisClientConfig config;
  private final JedisSocketFactory sockets;
  private final Supplier<Connection> connections;

  private InstrumentedJedis(RedisShim shim, HostAndPort address, JedisClientConfig config) {
    this.config = config;
    this.sockets = new DefaultJedisSocketFactory(address, config);
    this.connections =
        KillSwitch.isDisabled()
            ? () -> new Connection(sockets, config)
            : () -> new InstrumentedConnection(shim, sockets, config);
  }

  /** Returns what makes clients; it connects to nothing yet. */
  public static InstrumentedJedis of(
      RedisShim shim, HostAndPort address, JedisClientConfig config) {
    return new InstrumentedJedis(shim, address, config);
  }

  /** Returns one connection, for a {@code UnifiedJedis}, a {@code Pipeline} or a transaction. */
  public Connection connection() {
    Connection connection = connections.get();
    return config.getAuthXManager() == null
        ? connection
        : config.getAuthXManager().addConnection(connection);
  }

  /** Returns a client with a connection of its own. */
  public Jedis jedis() {
    return new Jedis(connection());
  }

  /** Returns what makes the connections of a {@code JedisPooled}. */
  public PooledObjectFactory<Connection> connections() {
    return new ConnectionFactory(sockets, config) {
      @Override
      public PooledObject<Connection> makeObject() {
        return new DefaultPooledObject<>(connection());
      }
    };
  }

  /** Returns what makes the clients of a {@code JedisPool}. */
  public PooledObjectFactory<Jedis> clients() {
    return new JedisFactory(sockets, config) {
      @Override
      public PooledObject<Jedis> makeObject() {
        return new DefaultPooledObject<>(jedis());
      }
    };
  }
}
