package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.agent.Vectors.Check;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import java.util.Map;

/** Levels 1 and 2, and what releases wrote: texts, lineages and what is made of them. */
final class CodecChecks {
  static final Map<String, Check> GOLDEN = Map.of("values", CodecChecks::aTextIsItsLineage);
  static final Map<String, Check> CODEC =
      Map.of(
          "valid", CodecChecks::aTextIsItsLineage,
          "limits", CodecChecks::theLargestTextsDecode,
          "errors", CodecChecks::everythingElseIsRefusedWithItsCode);
  static final Map<String, Check> ALGEBRA = Map.of("scripts", CodecChecks::everyStepHolds);
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private CodecChecks() {}

  private static void aTextIsItsLineage(String store, JsonNode vector) {
    String text = vector.get("text").asText();
    String canonical = vector.path("canonical").asText(text);
    Lineage lineage = Values.lineage(vector.get("lineage"));
    assertThat(Lineage.deserialize(text)).isEqualTo(lineage);
    assertThat(lineage.serialize()).isEqualTo(canonical);
    assertThat(Lineage.deserialize(canonical)).isEqualTo(lineage);
    assertThat(Values.lineage(Values.json(lineage))).isEqualTo(lineage);
  }

  private static void theLargestTextsDecode(String store, JsonNode vector) {
    Lineage lineage = Lineage.deserialize(text(vector));
    assertThat(lineage.writes()).hasSize(vector.get("writes").asInt());
    assertThat(lineage.unknown()).hasSize(vector.get("unknown").asInt());
    assertThat(Lineage.deserialize(lineage.serialize())).isEqualTo(lineage);
  }

  private static void everythingElseIsRefusedWithItsCode(String store, JsonNode vector) {
    String text = text(vector);
    LineageDecodeException error =
        catchThrowableOfType(LineageDecodeException.class, () -> Lineage.deserialize(text));
    assertThat(error).isNotNull();
    assertThat(error.code()).isEqualTo(vector.get("code").asText());
    assertThat(error.offset()).isBetween(0, text.length());
  }

  private static String text(JsonNode vector) {
    if (vector.has("text")) {
      return vector.get("text").asText();
    }
    StringBuilder text = new StringBuilder();
    vector
        .get("build")
        .forEach(part -> text.append(part.get(0).asText().repeat(part.get(1).asInt())));
    return text.toString();
  }

  private static void everyStepHolds(String store, JsonNode script) {
    JsonNode steps = script.get("steps");
    JsonNode results = Algebra.run(steps);
    assertThat(results).hasSameSizeAs(steps);
    for (int nth = 0; nth < steps.size(); nth++) {
      check(steps.get(nth), results.get(nth));
    }
  }

  private static void check(JsonNode step, JsonNode result) {
    switch (step.get("op").asText()) {
      case "encode", "encode_bounded" -> {
        JsonNode expected =
            step.has("code")
                ? MAPPER.createObjectNode().set("code", step.get("code"))
                : step.get("text");
        assertThat(result).isEqualTo(expected);
      }
      case "equal" -> assertThat(result).isEqualTo(step.get("equal"));
      case "count" -> {
        ObjectNode expected = result.deepCopy();
        expected
            .fieldNames()
            .forEachRemaining(
                kind ->
                    expected.set(
                        kind, step.path(kind).isMissingNode() ? result.get(kind) : step.get(kind)));
        assertThat(result).isEqualTo(expected);
      }
      default -> assertThat(step.has("as")).isTrue();
    }
  }
}
