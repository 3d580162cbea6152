package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.TextNode;
import io.antipode.lineage.Bound;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageTooLargeException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/** Runs the steps of a script of level 2. */
final class Algebra {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final Map<String, Lineage> lineages = new HashMap<>();

  /** Returns what each step came to. */
  static ArrayNode run(JsonNode steps) {
    Algebra script = new Algebra();
    ArrayNode results = JSON.arrayNode();
    steps.forEach(step -> results.add(script.step(step)));
    return results;
  }

  private JsonNode step(JsonNode step) {
    String operation = Values.text(step, "op");
    return switch (operation) {
      case "encode" -> TextNode.valueOf(named(step, "of").serialize());
      case "encode_bounded" -> bounded(step);
      case "equal" -> equal(step);
      case "count" -> count(named(step, "of"));
      default -> {
        Lineage made = make(operation, step);
        lineages.put(Values.text(step, "as"), made);
        yield TextNode.valueOf(made.serialize());
      }
    };
  }

  private Lineage make(String operation, JsonNode step) {
    return switch (operation) {
      case "decode" -> Lineage.deserialize(Values.text(step, "text"));
      case "append" -> named(step, "to").append(Values.write(Values.argument(step, "write")));
      case "remove" -> named(step, "from").remove(Values.write(Values.argument(step, "write")));
      case "merge" -> {
        Lineage[] all =
            Values.texts(Values.argument(step, "of")).stream()
                .map(this::named)
                .toArray(Lineage[]::new);
        yield Lineage.empty().merge(all);
      }
      case "only" -> named(step, "of").only(Values.texts(Values.argument(step, "datastores")));
      case "mark" ->
          named(step, "of")
              .marked(new Incomplete(Values.text(step, "subject"), Values.text(step, "reason")));
      case "receive" ->
          named(step, "of")
              .received(
                  Instant.ofEpochSecond(Values.argument(step, "now_s").asLong()),
                  Duration.ofSeconds(Values.argument(step, "max_promise_s").asLong()));
      case "hold" -> named(step, "of").holdable();
      default -> throw AgentException.senseless("no step " + operation);
    };
  }

  private JsonNode bounded(JsonNode step) {
    Bound bound = bound(step);
    try {
      return TextNode.valueOf(named(step, "of").serialize(bound));
    } catch (LineageTooLargeException error) {
      return JSON.objectNode().put("code", error.code());
    }
  }

  /** Returns the bound of the arguments {@code max_bytes} and {@code egress}. */
  static Bound bound(JsonNode arguments) {
    Bound bound =
        arguments.hasNonNull("max_bytes")
            ? Bound.ofBytes(arguments.get("max_bytes").asInt())
            : Bound.none();
    return arguments.hasNonNull("egress")
        ? bound.withEgress(Values.texts(arguments.get("egress")))
        : bound;
  }

  private JsonNode equal(JsonNode step) {
    JsonNode of = Values.argument(step, "of");
    return BooleanNode.valueOf(named(of.path(0).asText()).equals(named(of.path(1).asText())));
  }

  private static JsonNode count(Lineage lineage) {
    return JSON.objectNode()
        .put("writes", lineage.writes().size())
        .put("incomplete", lineage.incomplete().size())
        .put("promises", lineage.promises().size())
        .put("unknown", lineage.unknown().size());
  }

  private Lineage named(JsonNode step, String argument) {
    return named(Values.text(step, argument));
  }

  private Lineage named(String name) {
    Lineage lineage = lineages.get(name);
    if (lineage == null) {
      throw AgentException.senseless("no lineage " + name);
    }
    return lineage;
  }
}
