package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors of the stores that have a shim here: what it decides without its server. */
class StoresVectorsTest {
  private static JsonNode decided(String kind, JsonNode given) {
    return Decisions.decide(
        JsonNodeFactory.instance
            .objectNode()
            .put("store", "redis")
            .put("kind", kind)
            .set("given", given));
  }

  @TestFactory
  Stream<DynamicTest> aLookSaysWhatTheServersStateProves() {
    return Vectors.tests(
        "S1-positions",
        "redis",
        "looks",
        vector -> {
          JsonNode statuses = decided("look_at", vector).get("statuses");
          for (int nth = 0; nth < statuses.size(); nth++) {
            assertThat(statuses.get(nth)).isEqualTo(vector.at("/writes/" + nth + "/status"));
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aCompanionIsWrittenAsOtherLanguagesWriteIt() {
    return Vectors.tests(
        "S3-stored",
        "redis",
        "packs",
        vector ->
            assertThat(decided("stored", vector).get("companion"))
                .isEqualTo(vector.get("companion")));
  }

  @TestFactory
  Stream<DynamicTest> aCompanionIsReadAsOtherLanguagesReadIt() {
    return Vectors.tests(
        "S3-stored",
        "redis",
        "unpacks",
        vector -> assertThat(decided("found", vector).get("match")).isEqualTo(vector.get("match")));
  }
}
