package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** An instrumented connection of Lettuce: plain commands. */
final class OpenRedisClient extends OpenClient {
  private final RedisShim shim;
  private final RedisClient client;
  private final StatefulRedisConnection<String, String> connection;

  OpenRedisClient(JsonNode given) {
    shim = OpenRedis.builder(given).register();
    client = RedisClient.create(OpenRedis.RESOURCES, OpenRedis.address(given));
    connection = shim.instrument(client.connect());
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  void put(String key, String value) {
    String unused = connection.sync().set(key, value);
  }

  @Override
  void remove(String key) {
    Long unused = connection.sync().del(key);
  }

  @Override
  @Nullable String get(String key) {
    return connection.sync().get(key);
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return connection
        .async()
        .get(key)
        .toCompletableFuture()
        .thenApply(value -> new Found(value, null));
  }

  @Override
  public void close() {
    connection.close();
    client.shutdown(0, 0, TimeUnit.SECONDS);
    shim.close();
  }
}
