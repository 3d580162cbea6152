package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Lineage;
import io.antipode.Promise;
import io.antipode.barrier.Shim;
import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisURI;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;

/** An instrumented pool of Jedis: plain commands. */
final class OpenJedisClient implements OpenShim {
  private final RedisShim shim;
  private final JedisPooled jedis;

  OpenJedisClient(JsonNode given) {
    shim = OpenRedis.builder(given).register();
    RedisURI address = OpenRedis.address(given);
    int timeout = Math.toIntExact(address.getTimeout().toMillis());
    InstrumentedJedis instrumented =
        InstrumentedJedis.of(
            shim,
            new HostAndPort(address.getHost(), address.getPort()),
            DefaultJedisClientConfig.builder().timeoutMillis(timeout).build());
    jedis = new JedisPooled(instrumented.connections());
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public @Nullable Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    String unused = jedis.set(key, value);
    return null;
  }

  @Override
  public @Nullable Lineage delete(String key, @Nullable Lineage lineage) {
    long unused = jedis.del(key);
    return null;
  }

  @Override
  public Found read(String key) {
    return new Found(jedis.get(key), null);
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous API of Jedis");
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }

  @Override
  public void close() {
    jedis.close();
    shim.close();
  }
}
