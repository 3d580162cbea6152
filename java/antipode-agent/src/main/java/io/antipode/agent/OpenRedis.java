package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.Lineage;
import io.antipode.Promise;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/** A shim of Redis. */
final class OpenRedis implements OpenShim {
  static final ClientResources RESOURCES = DefaultClientResources.create();

  private static final Executor READING = Executors.newCachedThreadPool();

  private final RedisShim shim;

  OpenRedis(JsonNode given) {
    shim = builder(given).register();
  }

  static RedisURI address(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    RedisURI address =
        RedisURI.create(Values.text(server, "host"), Values.argument(server, "port").asInt());
    if (given.hasNonNull("timeout_s")) {
      address.setTimeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    return address;
  }

  static RedisShim.Builder builder(JsonNode given) {
    RedisShim.Builder builder =
        RedisShim.builder(Values.text(given, "datastore"), address(given)).resources(RESOURCES);
    if (given.path("reads_from").asText().equals("replica")) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    return builder;
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    return shim.write(key, bytes, lineage == null ? Antipode.current() : lineage, fulfils);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) {
    return shim.delete(key, lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Found read(String key) throws Exception {
    return text(shim.read(key));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(OpenRedis::text);
  }

  private static Found text(RedisShim.Found found) {
    byte @Nullable [] value = found.value();
    return new Found(
        value == null ? null : new String(value, StandardCharsets.UTF_8), found.lineage());
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }

  @Override
  public void close() {
    shim.close();
  }
}
