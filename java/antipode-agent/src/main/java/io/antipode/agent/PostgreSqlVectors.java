package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.WriteId;
import io.antipode.postgresql.PostgreSqlDecisions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Decisions of the shim of PostgreSQL, as vectors have them. */
final class PostgreSqlVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private PostgreSqlVectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> look(given);
      case "cover" ->
          JSON.objectNode()
              .set("lineage", Values.json(PostgreSqlDecisions.cover(answer(given.path("asked")))));
      case "command" -> command(given);
      case "found" -> found(given);
      case "named" -> named(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of postgresql");
    };
  }

  private static ObjectNode look(JsonNode given) {
    List<WriteId> writes = new ArrayList<>();
    for (JsonNode write : given.path("writes")) {
      ObjectNode whole = write.deepCopy();
      writes.add(Values.write(whole.put("datastore", "posts")));
    }
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    PostgreSqlDecisions.poll(answer(given.path("server")), writes)
        .forEach(status -> statuses.add(status.toString()));
    return value;
  }

  /** Returns what a server answers to a poll: a primary writes its timeline in hexadecimal. */
  private static Map<String, String> answer(JsonNode server) {
    Map<String, String> answer = new LinkedHashMap<>();
    server.properties().forEach(each -> answer.put(each.getKey(), each.getValue().asText("")));
    boolean isRecovering = server.path("recovering").asBoolean();
    int timeline = server.path("timeline").asInt();
    answer.put("recovering", isRecovering ? "t" : "f");
    answer.put("receiving", server.path("receiving").asBoolean() ? "t" : "f");
    answer.put(
        "timeline",
        isRecovering ? Integer.toString(timeline) : String.format(Locale.ROOT, "%08X", timeline));
    answer.putIfAbsent("rights", "files");
    return answer;
  }

  private static ObjectNode found(JsonNode given) {
    @Nullable String texts = given.path("texts").textValue();
    Table2.Kept kept = Table2.kept("posts", texts, given.path("own").asBoolean());
    ObjectNode value = JSON.objectNode().put("match", kept.match());
    return value.set("lineage", Values.json(kept.lineage()));
  }

  private static ObjectNode named(JsonNode given) {
    List<Map<String, String>> catalogue = new ArrayList<>();
    for (JsonNode row : given.path("catalogue")) {
      catalogue.add(Map.of("kind", Values.text(row, "kind"), "name", row.path("name").asText()));
    }
    List<String> functions = new ArrayList<>();
    given.path("functions").forEach(name -> functions.add(name.asText()));
    return JSON.objectNode()
        .put(
            "may_write",
            PostgreSqlDecisions.mayWrite(Values.text(given, "command"), catalogue, functions));
  }

  private static ObjectNode command(JsonNode given) {
    ObjectNode value = JSON.objectNode();
    PostgreSqlDecisions.does(Values.text(given, "command")).forEach(value.putArray("does")::add);
    return value;
  }
}
