package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.rabbitmq.RabbitMqDecisions;
import io.antipode.redis.RedisDecisions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What shims decide without their stores. */
final class Decisions {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private Decisions() {}

  static JsonNode decide(JsonNode request) {
    String store = Values.text(request, "store");
    String kind = Values.text(request, "kind");
    JsonNode given = Values.argument(request, "given");
    return switch (store) {
      case "activemq" -> ActiveMqVectors.decide(kind, given);
      case "dynamodb" -> DynamoDbVectors.decide(kind, given);
      case "mariadb", "mysql" -> MySqlVectors.decide(store, kind, given);
      case "mongodb" -> MongoVectors.decide(kind, given);
      case "postgresql" -> PostgreSqlVectors.decide(kind, given);
      case "rabbitmq" -> rabbitmq(kind, given);
      case "redis" -> redis(kind, given);
      case "s3" -> S3Vectors.decide(kind, given);
      case "sns" -> SnsVectors.decide(kind, given);
      default -> throw AgentException.unsupported("a shim of " + store);
    };
  }

  private static JsonNode rabbitmq(String kind, JsonNode given) {
    return switch (kind) {
      case "receipts" -> receipts(given);
      case "message" -> message(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of rabbitmq");
    };
  }

  private static ObjectNode message(JsonNode given) {
    Map<String, Object> headers = new HashMap<>();
    for (Map.Entry<String, JsonNode> each : given.path("headers").properties()) {
      JsonNode value = each.getValue();
      headers.put(each.getKey(), value.isTextual() ? value.asText() : (Object) value.asInt());
    }
    ObjectNode value = JSON.objectNode();
    value.set("lineage", Values.json(RabbitMqDecisions.lineage(headers)));
    return value;
  }

  private static Promise promise(JsonNode given) {
    ObjectNode whole = given.deepCopy();
    return Values.promise(whole.put("datastore", "posts"));
  }

  private static ObjectNode receipts(JsonNode given) {
    RabbitMqDecisions receipts = new RabbitMqDecisions();
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    for (JsonNode step : given.path("steps")) {
      receipts.at(Configuration.duration(step.path("at_s").asDouble()));
      switch (Values.text(step, "op")) {
        case "see" ->
            Values.texts(step.path("versions"))
                .forEach(
                    version ->
                        receipts.see(
                            write(
                                JSON.objectNode()
                                    .put("version", version)
                                    .set("key", step.get("key")))));
        case "listening" -> receipts.listening();
        case "fulfil" -> receipts.fulfil(promise(step.get("promise")));
        case "delivered" ->
            receipts.deliver(
                write(step.get("write")), Long.parseUnsignedLong(step.path("after").asText()));
        default ->
            statuses.add(
                (step.has("promise")
                        ? receipts.shows(promise(step.get("promise")))
                        : receipts.shows(write(step.get("write"))))
                    .toString());
      }
    }
    return value;
  }

  private static WriteId write(JsonNode given) {
    ObjectNode whole = given.deepCopy();
    return Values.write(whole.put("datastore", "posts"));
  }

  private static JsonNode redis(String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> poll(given);
      case "token" -> token(given);
      case "command" -> JSON.objectNode().put("does", RedisDecisions.kind(words(given, "command")));
      case "batch" -> batch(given);
      case "stored" -> stored(given);
      case "found" -> found(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of redis");
    };
  }

  private static ObjectNode poll(JsonNode given) {
    JsonNode server = given.path("server");
    List<WriteId> writes = new ArrayList<>();
    given.path("writes").forEach(write -> writes.add(write(write)));
    RedisDecisions.Answer first = answer(server.get("info"), server.get("error"));
    RedisDecisions.Answer then = server.has("then") ? answer(server.get("then"), null) : first;
    JsonNode history = server.path("history");
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    RedisDecisions.poll(first, then, log -> text(history.get(log)), writes)
        .forEach(status -> statuses.add(status.toString()));
    return value;
  }

  private static RedisDecisions.Answer answer(@Nullable JsonNode lines, @Nullable JsonNode error) {
    return new RedisDecisions.Answer(
        lines == null ? null : String.join("\r\n", Values.texts(lines)), text(error));
  }

  private static @Nullable String text(@Nullable JsonNode value) {
    return value == null || value.isNull() ? null : value.asText();
  }

  private static ObjectNode token(JsonNode given) {
    RedisDecisions.Token token =
        RedisDecisions.token(
            Values.text(given, "after"),
            answer(given.get("before"), given.get("before_error")),
            answer(given.get("info"), given.get("error")));
    ObjectNode value = JSON.objectNode();
    value.set("lineage", Values.json(token.lineage()));
    ObjectNode notes = value.putObject("notes");
    token.notes().forEach((log, end) -> notes.put(log, String.valueOf(end)));
    return value;
  }

  private static List<String> words(JsonNode given, String name) {
    return Values.texts(Values.argument(given, name));
  }

  private static ObjectNode batch(JsonNode given) {
    List<List<String>> commands = new ArrayList<>();
    given.path("commands").forEach(command -> commands.add(Values.texts(command)));
    RedisDecisions.Batch batch = RedisDecisions.batch(commands);
    return JSON.objectNode()
        .put("reads", batch.reads())
        .put("may_write", batch.mayWrite())
        .put("repeatable", batch.isRepeatable());
  }

  private static ObjectNode stored(JsonNode given) {
    String companion = RedisDecisions.stored(text(given.get("value")), Values.text(given, "text"));
    return JSON.objectNode().put("companion", companion);
  }

  private static ObjectNode found(JsonNode given) {
    Map.Entry<Lineage, String> found =
        RedisDecisions.found(
            Values.text(given, "shown"), text(given.get("value")), text(given.get("companion")));
    ObjectNode value = JSON.objectNode();
    value.set("lineage", Values.json(found.getKey()));
    return value.put("match", found.getValue());
  }
}
