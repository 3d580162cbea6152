package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.activemq.ActiveMqDecisions;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.messages.Publications;
import jakarta.jms.JMSException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the shim of ActiveMQ decides without its broker, in the form of the vectors. */
final class ActiveMqVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private ActiveMqVectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    try {
      return switch (kind) {
        case "command" -> command(given);
        case "label" -> label(given);
        case "message" ->
            JSON.objectNode().set("lineage", Values.json(ActiveMqDecisions.found(headers(given))));
        case "publications" -> publications(given);
        default -> throw AgentException.unsupported("decisions about a " + kind + " of activemq");
      };
    } catch (JMSException error) {
      throw new IllegalArgumentException("no properties of a message", error);
    }
  }

  private static ObjectNode command(JsonNode given) {
    boolean isWrite = ActiveMqDecisions.isWrite(Values.text(given, "command"));
    return JSON.objectNode().put("does", isWrite ? "write" : "neither");
  }

  private static Map<String, String> headers(JsonNode given) {
    Map<String, String> headers = new HashMap<>();
    for (Map.Entry<String, JsonNode> each : given.path("headers").properties()) {
      headers.put(each.getKey(), each.getValue().asText());
    }
    return headers;
  }

  private static ObjectNode label(JsonNode given) throws JMSException {
    Map<String, String> headers = headers(given);
    headers.put("m", "x".repeat(given.path("others").asInt()));
    ObjectNode write = given.path("write").deepCopy();
    @Nullable Map<String, Object> sent =
        ActiveMqDecisions.labelled(
            Values.text(given, "destination"),
            headers,
            Lineage.deserialize(Values.text(given, "text")),
            Values.write(write.put("datastore", "posts")));
    ObjectNode value = JSON.objectNode();
    if (sent == null) {
      return value.putNull("sent");
    }
    ObjectNode ours = value.putObject("sent");
    sent.forEach((name, text) -> ours.put(name, text.toString()));
    return value;
  }

  private static ObjectNode publications(JsonNode given) {
    Duration[] now = {Duration.ZERO};
    Publications names = new Publications("posts", false, () -> now[0].toNanos());
    List<WriteId> made = new ArrayList<>();
    for (JsonNode step : given.path("steps")) {
      now[0] = Configuration.duration(step.path("at_s").asDouble());
      switch (Values.text(step, "op")) {
        case "publish" -> made.add(names.next(Values.text(step, "to"), ""));
        case "lost" -> names.end(made.get(step.path("nth").asInt() - 1));
        default -> names.endAll();
      }
    }
    List<String> publishers = made.stream().map(WriteId::key).distinct().toList();
    ObjectNode value = JSON.objectNode();
    ArrayNode writes = value.putArray("writes");
    for (WriteId each : made) {
      writes
          .addObject()
          .put("publisher", publishers.indexOf(each.key()) + 1)
          .put("version", Long.toUnsignedString(each.version()));
    }
    return value;
  }
}
