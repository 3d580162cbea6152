package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors that MongoDB alone has. */
class MongoVectorsTest {
  @TestFactory
  Stream<DynamicTest> aReplyNamesAWriteAndCoversARead() {
    return Vectors.tests(
        "S1-positions",
        "mongodb",
        "positions",
        vector ->
            assertThat(Vectors.decided("mongodb", "position", vector).get("position"))
                .isEqualTo(vector.get("position")));
  }

  @TestFactory
  Stream<DynamicTest> aFieldIsReadAsOtherLanguagesReadIt() {
    return Vectors.tests(
        "S3-stored",
        "mongodb",
        "documents",
        vector -> {
          JsonNode found = Vectors.decided("mongodb", "found", vector);
          assertThat(Values.lineage(found.get("lineage")))
              .isEqualTo(Values.lineage(vector.get("lineage")));
          assertThat(found.get("match")).isEqualTo(vector.get("match"));
        });
  }
}
