package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors of MongoDB: what its shim decides without its server. */
class MongoVectorsTest {
  private static JsonNode decided(String kind, JsonNode given) {
    return Decisions.decide(
        JsonNodeFactory.instance
            .objectNode()
            .put("store", "mongodb")
            .put("kind", kind)
            .set("given", given));
  }

  @TestFactory
  Stream<DynamicTest> aLookSaysWhatTheServersStateProves() {
    return Vectors.tests(
        "S1-positions",
        "mongodb",
        "looks",
        vector -> {
          JsonNode statuses = decided("look_at", vector).get("statuses");
          assertThat(statuses).hasSameSizeAs(vector.get("writes"));
          for (int nth = 0; nth < statuses.size(); nth++) {
            assertThat(statuses.get(nth)).isEqualTo(vector.at("/writes/" + nth + "/status"));
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aReplyNamesAWriteAndCoversARead() {
    return Vectors.tests(
        "S1-positions",
        "mongodb",
        "positions",
        vector ->
            assertThat(decided("position", vector).get("position"))
                .isEqualTo(vector.get("position")));
  }

  @TestFactory
  Stream<DynamicTest> aCommandDoesWhatItsNameSays() {
    return Vectors.tests(
        "S2-commands",
        "mongodb",
        "groups",
        vector -> {
          for (JsonNode command : vector.get("commands")) {
            ObjectNode given = JsonNodeFactory.instance.objectNode();
            given.set("command", command);
            assertThat(decided("command", given).get("does"))
                .as("%s", command)
                .isEqualTo(vector.get("does"));
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aFieldIsReadAsOtherLanguagesReadIt() {
    return Vectors.tests(
        "S3-stored",
        "mongodb",
        "documents",
        vector -> {
          JsonNode found = decided("found", vector);
          assertThat(Values.lineage(found.get("lineage")))
              .isEqualTo(Values.lineage(vector.get("lineage")));
          assertThat(found.get("match")).isEqualTo(vector.get("match"));
        });
  }
}
