package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
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
final class OpenJedisClient extends OpenClient {
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
    jedis = instrumented.pooled();
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  void put(String key, String value) {
    String unused = jedis.set(key, value);
  }

  @Override
  void remove(String key) {
    long unused = jedis.del(key);
  }

  @Override
  @Nullable String get(String key) {
    return jedis.get(key);
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous API of Jedis");
  }

  @Override
  public void close() {
    jedis.close();
    shim.close();
  }
}
