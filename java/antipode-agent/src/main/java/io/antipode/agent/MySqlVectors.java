package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.WriteId;
import io.antipode.mysql.MySqlDecisions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Decisions of the shim of MySQL and MariaDB, as vectors have them. */
final class MySqlVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private MySqlVectors() {}

  static JsonNode decide(String store, String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> poll(given);
      case "commits" -> commits(given);
      case "cover" ->
          JSON.objectNode()
              .set("lineage", Values.json(MySqlDecisions.cover(texts(given.path("asked")))));
      case "gtid_set" -> gtidSet(given);
      case "server" -> server(given);
      case "calls" -> calls(given);
      case "command" -> command(given);
      case "found" ->
          JSON.objectNode()
              .set("lineage", Values.json(MySqlDecisions.found(Values.text(given, "column"))));
      case "pattern" ->
          JSON.objectNode().put("pattern", MySqlDecisions.pattern(Values.text(given, "text")));
      case "select" ->
          JSON.objectNode()
              .put(
                  "columns",
                  MySqlDecisions.select(
                      Values.texts(given.path("tables")), Values.text(given, "sql")));
      case "sought" -> sought(given);
      case "view" -> view(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of " + store);
    };
  }

  private static ObjectNode poll(JsonNode given) {
    List<WriteId> writes = new ArrayList<>();
    for (JsonNode write : given.path("writes")) {
      ObjectNode whole = write.deepCopy();
      writes.add(Values.write(whole.put("datastore", "posts")));
    }
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    MySqlDecisions.poll(servers(given.path("server")), writes)
        .forEach(status -> statuses.add(status.toString()));
    return value;
  }

  private static MySqlDecisions.Server servers(JsonNode server) {
    JsonNode follows = server.path("follows");
    return new MySqlDecisions.Server(
        server.path("gtid_executed").textValue(),
        server.path("later").textValue(),
        server.path("gtid_slave_pos").asText(),
        server.path("gtid_binlog_state").asText(),
        server.path("gtid_strict_mode").asBoolean(),
        server.path("read_only").asBoolean(),
        server.has("group"),
        follows.isTextual() ? null : above(follows),
        primaries(server));
  }

  private static @Nullable Set<String> primaries(JsonNode server) {
    JsonNode galera = server.path("galera");
    if (galera.isObject()) {
      String view = Values.text(galera, "state_uuid") + ":" + Values.text(galera, "conf_id");
      return Values.text(galera, "status").equals("Primary") ? Set.of(view) : Set.of();
    }
    if (!server.has("gtid_executed")) {
      return Set.of(server.path("server_id").asText("2"));
    }
    JsonNode members = server.path("members");
    if (members.isTextual()) {
      return null;
    }
    Set<String> primaries = new HashSet<>(Values.texts(members));
    primaries.add(server.path("uuid").asText("00000000-0000-0000-0000-000000000001"));
    return primaries;
  }

  private static List<MySqlDecisions.Above> above(JsonNode follows) {
    List<MySqlDecisions.Above> above = new ArrayList<>();
    for (JsonNode each : follows) {
      JsonNode server = each.path("server");
      String log = each.path(each.has("uuid") ? "uuid" : "server_id").asText();
      String received = each.path(each.has("uuid") ? "retrieved" : "gtid_io_pos").asText();
      MySqlDecisions.@Nullable Server there = server.isTextual() ? null : servers(server);
      boolean isConnected = each.path("connected").asBoolean(true);
      above.add(new MySqlDecisions.Above(log, received, isConnected, server.textValue(), there));
    }
    return above;
  }

  private static ObjectNode commits(JsonNode given) {
    MySqlDecisions.Sessions sessions = new MySqlDecisions.Sessions();
    ObjectNode value = JSON.objectNode();
    ArrayNode all = value.putArray("writes");
    for (JsonNode session : given.path("sessions")) {
      if (session.has("gtid_executed")) {
        sessions.begin(Values.text(session, "gtid_executed"), session.path("group_block").asLong());
      }
      ArrayNode committed = all.addArray();
      for (JsonNode commit : session.path("commits")) {
        @Nullable List<WriteId> writes = sessions.committed(Values.text(commit, "gtids"));
        if (writes == null) {
          committed.addNull();
        } else {
          ArrayNode named = committed.addArray();
          for (WriteId write : writes) {
            String version = Long.toUnsignedString(write.version());
            named.addObject().put("key", write.key()).put("version", version);
          }
        }
      }
    }
    return value;
  }

  private static ObjectNode gtidSet(JsonNode given) {
    ObjectNode value = JSON.objectNode();
    @Nullable Map<String, List<List<String>>> logs =
        MySqlDecisions.gtidSet(Values.text(given, "text"));
    if (logs == null) {
      return value.putNull("logs");
    }
    ObjectNode runs = value.putObject("logs");
    logs.forEach(
        (log, found) -> {
          ArrayNode all = runs.putArray(log);
          found.forEach(run -> run.forEach(all.addArray()::add));
        });
    return value;
  }

  private static ObjectNode server(JsonNode given) {
    Map<String, String> variables = texts(given.path("variables"));
    return JSON.objectNode()
        .put("waits", MySqlDecisions.waits(variables))
        .put("numbers", MySqlDecisions.numbers(variables));
  }

  private static ObjectNode calls(JsonNode given) {
    ObjectNode value = JSON.objectNode();
    boolean isMySql = Values.text(given, "family").equals("mysql");
    MySqlDecisions.calls(Values.text(given, "command"), isMySql)
        .forEach(value.putArray("calls")::add);
    return value;
  }

  private static ObjectNode command(JsonNode given) {
    ObjectNode value = JSON.objectNode();
    MySqlDecisions.does(Values.text(given, "command")).forEach(value.putArray("does")::add);
    return value;
  }

  private static ObjectNode sought(JsonNode given) {
    Map<String, List<String>> keys = new LinkedHashMap<>();
    given
        .path("key")
        .properties()
        .forEach(each -> keys.put(each.getKey(), Values.texts(each.getValue())));
    ObjectNode value = JSON.objectNode();
    ArrayNode sought = value.putArray("sought");
    MySqlDecisions.sought(keys, Values.text(given, "sql"))
        .forEach(row -> row.forEach(sought.addArray()::add));
    return value;
  }

  private static ObjectNode view(JsonNode given) {
    Map<String, Optional<String>> definitions = new LinkedHashMap<>();
    given
        .path("definitions")
        .properties()
        .forEach(
            each ->
                definitions.put(each.getKey(), Optional.ofNullable(each.getValue().textValue())));
    return JSON.objectNode()
        .put(
            "may_write",
            MySqlDecisions.mayWriteByView(
                Values.text(given, "command"),
                Values.text(given, "family").equals("mysql"),
                definitions,
                Set.copyOf(Values.texts(given.path("readonly_functions")))));
  }

  private static Map<String, String> texts(JsonNode object) {
    Map<String, String> texts = new LinkedHashMap<>();
    object.properties().forEach(each -> texts.put(each.getKey(), each.getValue().asText()));
    return texts;
  }
}
