package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Lineage;
import io.antipode.Promise;
import io.antipode.barrier.Shim;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** An instrumented connection of Lettuce: plain commands. */
final class OpenRedisClient implements OpenShim {
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
  public @Nullable Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    String unused = connection.sync().set(key, value);
    return null;
  }

  @Override
  public @Nullable Lineage delete(String key, @Nullable Lineage lineage) {
    Long unused = connection.sync().del(key);
    return null;
  }

  @Override
  public Found read(String key) {
    return new Found(connection.sync().get(key), null);
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
  public void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }

  @Override
  public void close() {
    connection.close();
    client.shutdown(0, 0, TimeUnit.SECONDS);
    shim.close();
  }
}
