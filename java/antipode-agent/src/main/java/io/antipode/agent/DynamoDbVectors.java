package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.dynamodb.DynamoDbDecisions;
import io.antipode.dynamodb.DynamoDbDecisions.Stands;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/** What the shim of DynamoDB decides without its service, in the form of the vectors. */
final class DynamoDbVectors {
  /** A microsecond that is later than every stamp. */
  private static final long LATE_US = 1L << 53;

  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private DynamoDbVectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> poll(given);
      case "keys" -> keys(given);
      case "command" -> command(given);
      case "expression" ->
          JSON.objectNode()
              .put("expression", DynamoDbDecisions.expression(Values.text(given, "given")));
      case "statement" -> statement(given);
      case "found" ->
          JSON.objectNode()
              .set("lineage", Values.json(DynamoDbDecisions.found(values(given.path("item")))));
      default -> throw AgentException.unsupported("decisions about a " + kind + " of dynamodb");
    };
  }

  /** What the regions have. */
  private static Map<String, Map<String, Map<String, Stands>>> regions(JsonNode given) {
    Map<String, Map<String, Map<String, Stands>>> regions = new HashMap<>();
    for (Map.Entry<String, JsonNode> region : given.properties()) {
      Map<String, Map<String, Stands>> tables = new HashMap<>();
      for (Map.Entry<String, JsonNode> table : region.getValue().properties()) {
        Map<String, Stands> items = new HashMap<>();
        for (Map.Entry<String, JsonNode> item : table.getValue().properties()) {
          JsonNode held = item.getValue();
          @Nullable Long stamp =
              held.has("stamp") ? Long.valueOf(held.path("stamp").asText()) : null;
          items.put(item.getKey(), new Stands(stamp, held.path("value").asText()));
        }
        tables.put(table.getKey(), items);
      }
      regions.put(region.getKey(), tables);
    }
    return regions;
  }

  private static ObjectNode poll(JsonNode given) {
    JsonNode server = given.path("server");
    List<Map<String, Map<String, Map<String, Stands>>>> polls = new ArrayList<>();
    if (given.has("before")) {
      polls.add(regions(given.path("before")));
    }
    polls.addAll(
        Collections.nCopies(given.path("looks").asInt(1), regions(server.path("regions"))));
    long now = given.has("now_us") ? Long.parseLong(given.path("now_us").asText()) : LATE_US;
    List<WriteId> writes = new ArrayList<>();
    for (JsonNode write : given.path("writes")) {
      ObjectNode whole = write.deepCopy();
      writes.add(Values.write(whole.put("datastore", "posts")));
    }
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    try {
      DynamoDbDecisions.poll(Values.text(server, "region"), polls, writes, now)
          .forEach(status -> statuses.add(status.toString()));
    } catch (Exception error) { // Its own region answers.
      throw new IllegalStateException(error);
    }
    return value;
  }

  private static ObjectNode keys(JsonNode given) {
    @Nullable String named =
        DynamoDbDecisions.named(
            Values.text(given, "table"), values(given.path("key")), Values.text(given, "region"));
    ObjectNode value = JSON.objectNode();
    if (named == null) {
      return value.putNull("keys");
    }
    value.putArray("keys").add(named);
    return value;
  }

  private static ObjectNode statement(JsonNode given) {
    List<AttributeValue> parameters = new ArrayList<>();
    given.path("parameters").forEach(each -> parameters.add(value(each)));
    List<String> key = new ArrayList<>();
    given.path("key").forEach(each -> key.add(each.asText()));
    DynamoDbDecisions.Stamped stamped =
        DynamoDbDecisions.stamped(
            Values.text(given, "statement"), parameters, key.isEmpty() ? List.of("id") : key);
    return JSON.objectNode().put("stamped", stamped.text()).put("item", stamped.item());
  }

  private static ObjectNode command(JsonNode given) {
    Map.Entry<String, JsonNode> command =
        Values.argument(given, "command").properties().iterator().next();
    JsonNode parameters = command.getValue();
    List<@Nullable String> statements = new ArrayList<>();
    if (parameters.has("Statement")) {
      statements.add(parameters.path("Statement").asText());
    }
    for (String several : List.of("Statements", "TransactStatements")) {
      parameters.path(several).forEach(each -> statements.add(each.path("Statement").asText()));
    }
    return JSON.objectNode().put("does", DynamoDbDecisions.kind(command.getKey(), statements));
  }

  private static Map<String, AttributeValue> values(JsonNode given) {
    Map<String, AttributeValue> values = new HashMap<>();
    for (Map.Entry<String, JsonNode> each : given.properties()) {
      values.put(each.getKey(), value(each.getValue()));
    }
    return values;
  }

  private static AttributeValue value(JsonNode given) {
    Map.Entry<String, JsonNode> typed = given.properties().iterator().next();
    String value = typed.getValue().asText();
    return switch (typed.getKey()) {
      case "N" -> AttributeValue.fromN(value);
      case "B" -> AttributeValue.fromB(SdkBytes.fromByteArray(Base64.getDecoder().decode(value)));
      case "BOOL" -> AttributeValue.fromBool(typed.getValue().asBoolean());
      default -> AttributeValue.fromS(value);
    };
  }
}
