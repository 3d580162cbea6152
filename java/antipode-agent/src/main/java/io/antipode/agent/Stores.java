package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The shims that are open, and what is done by them. Thread-safe. */
final class Stores {
  /** The stores of which there are shims. */
  static final List<String> NAMES =
      List.of(
          "activemq",
          "dynamodb",
          "mariadb",
          "mongodb",
          "mysql",
          "postgresql",
          "rabbitmq",
          "redis",
          "s3");

  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final Map<String, OpenShim> open = new ConcurrentHashMap<>();
  private final AtomicInteger handles = new AtomicInteger();

  JsonNode open(JsonNode request) throws Exception {
    String handle = "d" + handles.incrementAndGet();
    open.put(handle, opened(Values.text(request, "store"), request));
    return JSON.objectNode().put("shim", handle);
  }

  private static OpenShim opened(String store, JsonNode request) throws Exception {
    boolean isClient = request.path("client").asBoolean();
    if (store.equals("activemq")) {
      return isClient ? new OpenActiveMqClient(request) : new OpenActiveMq(request);
    }
    if (store.equals("rabbitmq")) {
      return isClient ? new OpenRabbitMqClient(request) : new OpenRabbitMq(request);
    }
    if (store.equals("redis")) {
      return isClient ? redisClient(request) : new OpenRedis(request);
    }
    if (!NAMES.contains(store)) {
      throw AgentException.unsupported("a shim of " + store);
    }
    if (store.equals("dynamodb")) {
      return isClient ? new OpenDynamoDbClient(request) : new OpenDynamoDb(request);
    }
    if (store.equals("s3")) {
      return isClient ? new OpenS3Client(request) : new OpenS3(request);
    }
    if (store.equals("mongodb")) {
      return isClient ? new OpenMongoDbClient(request) : new OpenMongoDb(request);
    }
    if (!isClient) {
      return new OpenSql(store, request);
    }
    return store.equals("postgresql")
        ? OpenJdbcClient.ofPostgreSql(request)
        : OpenJdbcClient.ofMySql(store, request);
  }

  private static OpenShim redisClient(JsonNode request) {
    String library = request.path("library").asText("lettuce");
    return switch (library) {
      case "lettuce" -> new OpenRedisClient(request);
      case "jedis" -> new OpenJedisClient(request);
      case "spring-data" -> new OpenSpringRedisClient(request);
      default -> throw AgentException.unsupported("a client of redis by " + library);
    };
  }

  private OpenShim shim(JsonNode request) {
    OpenShim shim = open.get(Values.text(request, "shim"));
    if (shim == null) {
      throw AgentException.senseless("no such open shim");
    }
    return shim;
  }

  JsonNode close(JsonNode request) {
    OpenShim shim = shim(request);
    open.remove(Values.text(request, "shim"));
    shim.close();
    return NullNode.instance;
  }

  /** Returns the handles of those that are open. */
  Set<String> open() {
    return open.keySet();
  }

  void closeAll() {
    open.values().forEach(OpenShim::close);
  }

  private static @Nullable Lineage lineage(JsonNode request) {
    return request.hasNonNull("lineage")
        ? Lineage.deserialize(Values.text(request, "lineage"))
        : null;
  }

  private static JsonNode text(@Nullable Lineage lineage) {
    return lineage == null ? NullNode.instance : TextNode.valueOf(lineage.serialize());
  }

  JsonNode write(JsonNode request) throws Exception {
    @Nullable Promise fulfils =
        request.hasNonNull("fulfils") ? Values.promise(request.get("fulfils")) : null;
    String key = Values.text(request, "key");
    return text(shim(request).write(key, Values.text(request, "value"), lineage(request), fulfils));
  }

  JsonNode delete(JsonNode request) throws Exception {
    return text(shim(request).delete(Values.text(request, "key"), lineage(request)));
  }

  JsonNode read(JsonNode request, Waits waits) throws Exception {
    OpenShim shim = shim(request);
    String key = Values.text(request, "key");
    OpenShim.Found found =
        request.path("api").asText().equals("async")
            ? waits.await(request, shim.readAsync(key))
            : shim.read(key);
    ObjectNode value = JSON.objectNode().put("value", found.value());
    value.set("lineage", text(found.lineage()));
    return value;
  }

  JsonNode rolledBack(JsonNode request) throws Exception {
    Promise fulfils = Values.promise(Values.argument(request, "fulfils"));
    shim(request).rolledBack(Values.text(request, "key"), Values.text(request, "value"), fulfils);
    return NullNode.instance;
  }

  JsonNode jdbc(JsonNode request) throws Exception {
    if (shim(request) instanceof OpenJdbcClient client) {
      return client
          .jdbc()
          .call(
              Values.text(request, "call"),
              request.path("sql").asText(""),
              Values.texts(request.path("parameters")));
    }
    throw AgentException.unsupported("jdbc of another store");
  }

  JsonNode mongo(JsonNode request) throws Exception {
    if (shim(request) instanceof OpenMongoDbClient client) {
      return client
          .calls()
          .call(
              Values.text(request, "call"),
              request.path("concern").asText(""),
              request.path("argument").asText(""));
    }
    throw AgentException.unsupported("mongo of another store");
  }

  JsonNode consume(JsonNode request) throws Exception {
    if (shim(request) instanceof OpenRabbitMq broker) {
      return Consuming.run(broker, request);
    }
    throw AgentException.unsupported("consume of another store");
  }

  JsonNode await(JsonNode request, Waits waits) throws Exception {
    BarrierOptions options =
        BarrierOptions.timeout(
                Configuration.duration(Values.argument(request, "timeout_s").asDouble()))
            .withOnly(shim(request).shim().datastore());
    @Nullable Lineage given = lineage(request);
    options = options.withLineage(given == null ? Antipode.current() : given);
    return Values.json(
        request.path("api").asText().equals("async")
            ? waits.await(request, Barriers.barrierAsync(options))
            : Barriers.barrier(options));
  }
}
