package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.agent.Vectors.Check;
import io.antipode.lineage.Lineage;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Levels S1 to S3: what a shim decides without its server. */
final class StoreChecks {
  static final Map<String, Check> KINDS =
      Map.ofEntries(
          Map.entry("looks", StoreChecks::aPollSaysWhatTheServersStateProves),
          Map.entry("scripts", StoreChecks::receiptsSayWhatWasHeardAndNoMore),
          Map.entry("publications", StoreChecks::aPublicationIsNamedByPublisherAndNumber),
          Map.entry("groups", StoreChecks::aCommandDoesWhatItsWordsSay),
          Map.entry("commits", StoreChecks::aCommitIsNamedByTheRunOfItsNumber),
          Map.entry("updates", StoreChecks::anUpdateLosesNothingButWhatIsSuperseded),
          Map.entry("tokens", decision("token", "lineage", "notes")),
          Map.entry("batches", decision("batch", "reads", "may_write", "repeatable")),
          Map.entry("positions", decision("position", "position")),
          Map.entry("documents", decision("found", "lineage", "match")),
          Map.entry("covers", decision("cover", "lineage")),
          Map.entry("expressions", decision("expression", "expression")),
          Map.entry("sets", decision("gtid_set", "logs")),
          Map.entry("servers", decision("server", "waits", "numbers")),
          Map.entry("calls", decision("calls", "calls")),
          Map.entry("catalogues", decision("named", "may_write")),
          Map.entry("views", decision("view", "may_write")),
          Map.entry("keys", decision("keys", "keys")),
          Map.entry("labels", decision("label", "sent")),
          Map.entry("messages", decision("message", "lineage")),
          Map.entry("packs", decision("stored", "companion")),
          Map.entry("rows", decision("found", "lineage")),
          Map.entry("selects", decision("select", "columns")),
          Map.entry("sought", decision("sought", "sought")),
          Map.entry("statements", decision("statement", "stamped", "item")),
          Map.entry("unpacks", decision("found", "lineage", "match")));

  /** Stores' decisions that this library leaves to others. */
  private static final Set<String> LACKING = Set.of("redis keys");

  /** What is an object without members where a vector leaves it out. */
  private static final Set<String> EMPTY = Set.of("lineage", "notes");

  private static final int ROW_CHARACTERS = 1_024;
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private StoreChecks() {}

  private static JsonNode decided(String store, String kind, JsonNode given) throws IOException {
    ObjectNode request = JSON.objectNode().put("store", store).put("kind", kind);
    return Vectors.sent(Decisions.decide(request.set("given", given)));
  }

  /** Returns a check that a decision has what the vector has under these names, and no more. */
  private static Check decision(String kind, String... names) {
    return (store, vector) -> {
      if (LACKING.contains(store + " " + kind)) {
        assertThat(refusal(store, kind, vector)).isEqualTo("unsupported");
        return;
      }
      JsonNode found = decided(store, kind, vector);
      assertThat(found.fieldNames()).toIterable().containsExactlyInAnyOrder(names);
      for (String name : names) {
        assertSame(name, found.get(name), expected(vector, name));
      }
    };
  }

  private static String refusal(String store, String kind, JsonNode vector) {
    return catchThrowableOfType(AgentException.class, () -> decided(store, kind, vector)).code();
  }

  private static void assertSame(String name, JsonNode found, JsonNode expected) {
    if (name.equals("lineage")) {
      assertThat(hourless(found)).isEqualTo(hourless(expected));
    } else {
      assertThat(found).as(name).isEqualTo(expected);
    }
  }

  /** Returns what a vector has under a name, which is nothing where it leaves that out. */
  private static JsonNode expected(JsonNode vector, String name) {
    if (vector.has(name)) {
      return vector.get(name);
    }
    return EMPTY.contains(name) ? JSON.objectNode() : JSON.nullNode();
  }

  /** What is recorded states the present hour, which no vector can know. */
  private static Lineage hourless(JsonNode value) {
    Lineage lineage = Values.lineage(value);
    Lineage.Builder result = Lineage.builder().openBranches(lineage.openBranches());
    lineage.writes().stream().map(write -> write.writtenAt(0)).forEach(result::write);
    lineage.incomplete().forEach(result::incomplete);
    lineage.promises().forEach(result::promise);
    lineage.unknown().forEach(result::unknown);
    return result.build();
  }

  private static void aPollSaysWhatTheServersStateProves(String store, JsonNode vector)
      throws IOException {
    assertThat(decided(store, "look_at", vector).get("statuses"))
        .isEqualTo(each(vector.get("writes"), "status"));
  }

  /** Returns what those of a list have under a name that have it. */
  private static ArrayNode each(JsonNode list, String name) {
    ArrayNode values = JSON.arrayNode();
    for (JsonNode one : list) {
      if (one.has(name)) {
        values.add(one.get(name));
      }
    }
    return values;
  }

  private static void receiptsSayWhatWasHeardAndNoMore(String store, JsonNode vector)
      throws IOException {
    assertThat(decided(store, "receipts", vector).get("statuses"))
        .isEqualTo(each(vector.get("steps"), "status"));
  }

  private static void aPublicationIsNamedByPublisherAndNumber(String store, JsonNode vector)
      throws IOException {
    assertThat(decided(store, "publications", vector).get("writes"))
        .isEqualTo(each(vector.get("steps"), "write"));
  }

  private static void aCommandDoesWhatItsWordsSay(String store, JsonNode vector)
      throws IOException {
    for (JsonNode command : vector.get("commands")) {
      JsonNode given = JSON.objectNode().set("command", command);
      assertThat(decided(store, "command", given).get("does"))
          .as("%s", command)
          .isEqualTo(vector.get("does"));
    }
  }

  private static void aCommitIsNamedByTheRunOfItsNumber(String store, JsonNode vector)
      throws IOException {
    ArrayNode expected = JSON.arrayNode();
    vector.get("sessions").forEach(session -> expected.add(each(session.get("commits"), "writes")));
    assertThat(decided(store, "commits", vector).get("writes")).isEqualTo(expected);
  }

  private static void anUpdateLosesNothingButWhatIsSuperseded(String store, JsonNode vector)
      throws IOException {
    @Nullable String text = vector.get("text").textValue();
    @Nullable String row = vector.get("row").textValue();
    if (text != null) {
      JsonNode given = JSON.objectNode().put("text", text);
      row = updated(row, text, decided(store, "pattern", given).get("pattern").asText());
    }
    assertThat(row).isEqualTo(vector.get("after").textValue());
  }

  /** Returns what the trigger makes of a row; the servers are held to it by the same vectors. */
  private static String updated(@Nullable String row, String text, String pattern) {
    if (row == null) {
      return text;
    }
    List<String> held = Arrays.asList(row.split(",", -1));
    if (held.contains(text)) {
      return row;
    }
    boolean isOfAnother =
        row.contains("~z") || !held.stream().allMatch(each -> each.startsWith("1"));
    String merged =
        pattern.isEmpty() || isOfAnother
            ? text + "," + row
            : (text + "," + row.replaceAll(pattern, "")).replaceAll(",1[0-9a-z]*(?=,|$)", "");
    boolean hasRoom = merged.length() <= ROW_CHARACTERS || merged.equals(text);
    return hasRoom ? merged : text + ",1~isize.-";
  }
}
