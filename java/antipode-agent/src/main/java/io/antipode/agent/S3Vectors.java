package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.s3.S3Decisions;
import io.antipode.s3.S3Decisions.Stands;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What the shim of S3 decides without its service, in the form of the vectors. */
final class S3Vectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  /** What `labels` store. */
  private static final Lineage STORED = Lineage.of(WriteId.of("else", "log", 7).writtenAt(500_000));

  private S3Vectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> poll(given);
      case "keys" -> keys(given);
      case "command" -> command(given);
      case "found" ->
          JSON.objectNode()
              .set("lineage", Values.json(S3Decisions.found(texts(given.path("metadata")))));
      case "label" -> label(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of s3");
    };
  }

  private static ObjectNode poll(JsonNode given) {
    JsonNode server = given.path("server");
    Map<String, Map<String, Map<String, List<Stands>>>> regions = new HashMap<>();
    for (Map.Entry<String, JsonNode> region : server.path("regions").properties()) {
      Map<String, Map<String, List<Stands>>> buckets = new HashMap<>();
      for (Map.Entry<String, JsonNode> bucket : region.getValue().properties()) {
        Map<String, List<Stands>> keys = new HashMap<>();
        for (Map.Entry<String, JsonNode> key : bucket.getValue().properties()) {
          List<Stands> versions = new ArrayList<>();
          key.getValue()
              .forEach(
                  each ->
                      versions.add(
                          new Stands(
                              each.path("version").asText(), each.path("replication").asText(""))));
          keys.put(key.getKey(), versions);
        }
        buckets.put(bucket.getKey(), keys);
      }
      regions.put(region.getKey(), buckets);
    }
    List<WriteId> writes = new ArrayList<>();
    for (JsonNode write : given.path("writes")) {
      ObjectNode whole = write.deepCopy();
      writes.add(Values.write(whole.put("datastore", "posts")));
    }
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    try {
      S3Decisions.poll(
              Values.text(server, "region"),
              texts(server.path("buckets")),
              regions,
              given.path("looks").asInt(1),
              writes)
          .forEach(status -> statuses.add(status.toString()));
    } catch (Exception error) { // Its own region answers.
      throw new IllegalStateException(error);
    }
    return value;
  }

  private static ObjectNode keys(JsonNode given) {
    @Nullable String named =
        S3Decisions.named(
            Values.text(given, "bucket"), given.path("key").asText(), Values.text(given, "region"));
    ObjectNode value = JSON.objectNode();
    if (named == null) {
      return value.putNull("keys");
    }
    value.putArray("keys").add(named);
    return value;
  }

  private static ObjectNode command(JsonNode given) {
    Map.Entry<String, JsonNode> command =
        Values.argument(given, "command").properties().iterator().next();
    return JSON.objectNode()
        .put(
            "does", S3Decisions.kind(command.getKey(), command.getValue().hasNonNull("VersionId")));
  }

  private static ObjectNode label(JsonNode given) {
    @Nullable Set<String> sent =
        S3Decisions.labelled(Map.of("m", "x".repeat(given.path("others").asInt())), STORED);
    ObjectNode value = JSON.objectNode();
    if (sent == null) {
      return value.putNull("sent");
    }
    sent.forEach(value.putArray("sent")::add);
    return value;
  }

  private static Map<String, String> texts(JsonNode given) {
    Map<String, String> texts = new HashMap<>();
    given.properties().forEach(each -> texts.put(each.getKey(), each.getValue().asText()));
    return texts;
  }
}
