package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim of Redis. */
final class OpenRedis extends OpenBytes {
  static final ClientResources RESOURCES = DefaultClientResources.create();

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
    return OpenShim.reading(
        RedisShim.builder(Values.text(given, "datastore"), address(given)).resources(RESOURCES),
        given);
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils) {
    return shim.write(key, value, lineage, fulfils);
  }

  @Override
  Lineage remove(String key, Lineage lineage) {
    return shim.delete(key, lineage);
  }

  @Override
  public Found read(String key) throws Exception {
    RedisShim.Found found = shim.read(key);
    return found(found.value(), found.lineage());
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(each -> found(each.value(), each.lineage()));
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
