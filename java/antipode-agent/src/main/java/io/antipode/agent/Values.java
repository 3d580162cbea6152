package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Outcome;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Values in the form of the vectors. */
final class Values {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private Values() {}

  static JsonNode argument(JsonNode arguments, String name) {
    JsonNode value = arguments.get(name);
    if (value == null || value.isNull()) {
      throw AgentException.senseless("the argument " + name + " is missing");
    }
    return value;
  }

  static String text(JsonNode arguments, String name) {
    JsonNode value = argument(arguments, name);
    if (!value.isTextual()) {
      throw AgentException.senseless("the argument " + name + " is not a string");
    }
    return value.textValue();
  }

  /** Returns the strings of a list, or the one that stands alone. */
  static List<String> texts(JsonNode list) {
    List<String> texts = new ArrayList<>();
    if (list.isTextual()) {
      texts.add(list.textValue());
    }
    list.forEach(text -> texts.add(text.asText()));
    return texts;
  }

  static WriteId write(JsonNode value) {
    String datastore = text(value, "datastore");
    String key = text(value, "key");
    WriteId write =
        value.has("opaque")
            ? WriteId.ofOpaque(datastore, key, text(value, "opaque"))
            : WriteId.of(datastore, key, Long.parseUnsignedLong(text(value, "version")));
    write = write.writtenAt(value.path("minted_h").asLong());
    return value.path("covering").asBoolean() ? write.asCovering() : write;
  }

  static ObjectNode json(WriteId write) {
    ObjectNode value = JSON.objectNode();
    value.put("datastore", write.datastore()).put("key", write.key());
    String opaque = write.opaqueVersion();
    if (opaque == null) {
      value.put("version", Long.toUnsignedString(write.version()));
    } else {
      value.put("opaque", opaque);
    }
    if (write.writtenHour() != 0) {
      value.put("minted_h", write.writtenHour());
    }
    if (write.isCovering()) {
      value.put("covering", true);
    }
    return value;
  }

  static Promise promise(JsonNode value) {
    return new Promise(
        text(value, "datastore"), text(value, "id"), argument(value, "expires_s").asLong());
  }

  static ObjectNode json(Promise promise) {
    return JSON.objectNode()
        .put("datastore", promise.datastore())
        .put("id", promise.id())
        .put("expires_s", promise.expiresS());
  }

  static ObjectNode json(Outcome outcome) {
    ObjectNode value = JSON.objectNode();
    Dependency dependency = outcome.dependency();
    if (dependency instanceof WriteId write) {
      value.set("write", json(write));
    } else if (dependency instanceof Promise promise) {
      value.set("promise", json(promise));
    }
    return value
        .put("status", outcome.status().toString())
        .put("reported", outcome.reported())
        .put("server", outcome.server())
        .put("cause", outcome.cause())
        .put("waited_s", seconds(outcome.waited()));
  }

  static ObjectNode json(BarrierResult result) {
    ObjectNode value = JSON.objectNode();
    ArrayNode outcomes = value.put("ok", result.isOk()).putArray("outcomes");
    result.outcomes().forEach(outcome -> outcomes.add(json(outcome)));
    value.put("waited_s", seconds(result.waited()));
    Duration eta = result.eta();
    value.put("eta_s", eta == null ? null : Double.valueOf(seconds(eta)));
    ArrayNode incomplete = value.putArray("incomplete");
    result
        .incomplete()
        .forEach(mark -> incomplete.addArray().add(mark.subject()).add(mark.reason()));
    return value.put("incomplete_ok", result.isIncompleteOk());
  }

  private static double seconds(Duration duration) {
    return duration.toNanos() / 1e9;
  }

  static Lineage lineage(JsonNode value) {
    Lineage.Builder lineage = Lineage.builder();
    value.path("writes").forEach(write -> lineage.write(write(write)));
    value
        .path("incomplete")
        .forEach(
            mark ->
                lineage.incomplete(new Incomplete(mark.path(0).asText(), mark.path(1).asText())));
    value.path("promises").forEach(promise -> lineage.promise(promise(promise)));
    value.path("unknown").forEach(item -> lineage.unknown(item.asText()));
    if (value.has("open_branches")) {
      lineage.openBranches(Long.parseUnsignedLong(text(value, "open_branches")));
    }
    return lineage.build();
  }

  static ObjectNode json(Lineage lineage) {
    ObjectNode value = JSON.objectNode();
    ArrayNode writes = JSON.arrayNode();
    lineage.writes().forEach(write -> writes.add(json(write)));
    ArrayNode incomplete = JSON.arrayNode();
    lineage
        .incomplete()
        .forEach(mark -> incomplete.addArray().add(mark.subject()).add(mark.reason()));
    ArrayNode promises = JSON.arrayNode();
    lineage.promises().forEach(promise -> promises.add(json(promise)));
    ArrayNode unknown = JSON.arrayNode();
    lineage.unknown().forEach(unknown::add);
    value.set("writes", writes);
    value.set("incomplete", incomplete);
    value.set("promises", promises);
    value.set("unknown", unknown);
    value.properties().removeIf(part -> part.getValue().isEmpty());
    if (lineage.openBranches() != 0) {
      value.put("open_branches", Long.toUnsignedString(lineage.openBranches()));
    }
    return value;
  }
}
