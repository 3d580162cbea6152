package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors of the specification, read where they lie. */
class VectorsTest {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  @TestFactory
  Stream<DynamicTest> textsDecodeToTheirLineageAndEncodeCanonically() {
    return Vectors.tests("L1-codec", "valid", VectorsTest::valid);
  }

  @TestFactory
  Stream<DynamicTest> releasedValuesStayAsTheyAre() {
    return Vectors.tests("golden/v1", "values", VectorsTest::valid);
  }

  private static void valid(JsonNode vector) {
    String text = vector.get("text").asText();
    String canonical = vector.path("canonical").asText(text);
    Lineage lineage = Values.lineage(vector.get("lineage"));
    assertThat(Lineage.deserialize(text)).isEqualTo(lineage);
    assertThat(lineage.serialize()).isEqualTo(canonical);
    assertThat(Lineage.deserialize(canonical)).isEqualTo(lineage);
    assertThat(Values.lineage(Values.json(lineage))).isEqualTo(lineage);
  }

  @TestFactory
  Stream<DynamicTest> theLargestTextsDecode() {
    return Vectors.tests(
        "L1-codec",
        "limits",
        vector -> {
          Lineage lineage = Lineage.deserialize(text(vector));
          assertThat(lineage.writes()).hasSize(vector.get("writes").asInt());
          assertThat(lineage.unknown()).hasSize(vector.get("unknown").asInt());
        });
  }

  @TestFactory
  Stream<DynamicTest> everythingElseIsRefusedWithItsCode() {
    return Vectors.tests(
        "L1-codec",
        "errors",
        vector -> {
          String text = text(vector);
          LineageDecodeException error =
              catchThrowableOfType(LineageDecodeException.class, () -> Lineage.deserialize(text));
          assertThat(error).isNotNull();
          assertThat(error.code()).isEqualTo(vector.get("code").asText());
          assertThat(error.offset()).isBetween(0, text.length());
        });
  }

  @TestFactory
  Stream<DynamicTest> scriptsOfOperationsHold() {
    return Vectors.tests(
        "L2-algebra",
        "scripts",
        script -> {
          JsonNode steps = script.get("steps");
          JsonNode results = Algebra.run(steps);
          for (int i = 0; i < steps.size(); i++) {
            check(steps.get(i), results.get(i));
          }
        });
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
}
