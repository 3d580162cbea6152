package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.antipode.lineage.Lineage;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors of all stores that have a shim here: what it decides without its server. */
class StoresVectorsTest {
  private static final List<String> STORES =
      List.of("activemq", "mariadb", "mongodb", "mysql", "redis");
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private static JsonNode decided(String kind, JsonNode given) {
    return Vectors.decided("redis", kind, given);
  }

  @TestFactory
  Stream<DynamicTest> receiptsSayWhatWasHeardAndNoMore() {
    return Vectors.tests(
        "S1-positions",
        "rabbitmq",
        "scripts",
        vector -> {
          ArrayNode expected = JSON.arrayNode();
          for (JsonNode step : vector.get("steps")) {
            if (step.has("status")) {
              expected.add(step.get("status"));
            }
          }
          assertThat(Vectors.decided("rabbitmq", "receipts", vector).get("statuses"))
              .isEqualTo(expected);
        });
  }

  @TestFactory
  Stream<DynamicTest> aConsumerDependsOnWhatItsMessageSays() {
    return Stream.of("activemq", "rabbitmq")
        .flatMap(
            store ->
                Vectors.tests(
                    "S3-stored",
                    store,
                    "messages",
                    vector -> {
                      Lineage found =
                          Values.lineage(Vectors.decided(store, "message", vector).get("lineage"));
                      assertThat(found).isEqualTo(Values.lineage(vector.get("lineage")));
                    }));
  }

  @TestFactory
  Stream<DynamicTest> aMessageIsSentWithWhatItDependsOnWhereThatHasRoom() {
    return Vectors.tests(
        "S3-stored",
        "activemq",
        "labels",
        vector ->
            assertThat(Vectors.decided("activemq", "label", vector).get("sent"))
                .isEqualTo(vector.get("sent")));
  }

  @TestFactory
  Stream<DynamicTest> aPublicationIsNamedByItsPublisherAndItsNumber() {
    return Vectors.tests(
        "S1-positions",
        "activemq",
        "publications",
        vector -> {
          ArrayNode expected = JSON.arrayNode();
          for (JsonNode step : vector.get("steps")) {
            if (step.has("write")) {
              expected.add(step.get("write"));
            }
          }
          assertThat(Vectors.decided("activemq", "publications", vector).get("writes"))
              .isEqualTo(expected);
        });
  }

  private static Stream<DynamicTest> ofStores(
      String folder, String kind, BiConsumer<String, JsonNode> check) {
    return STORES.stream()
        .flatMap(
            store -> Vectors.tests(folder, store, kind, vector -> check.accept(store, vector)));
  }

  @TestFactory
  Stream<DynamicTest> aLookSaysWhatTheServersStateProves() {
    return ofStores(
        "S1-positions",
        "looks",
        (store, vector) -> {
          JsonNode statuses = Vectors.decided(store, "look_at", vector).get("statuses");
          assertThat(statuses).hasSameSizeAs(vector.get("writes"));
          for (int nth = 0; nth < statuses.size(); nth++) {
            assertThat(statuses.get(nth)).isEqualTo(vector.at("/writes/" + nth + "/status"));
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> aCommandDoesWhatItsWordsSay() {
    return ofStores(
        "S2-commands",
        "groups",
        (store, vector) -> {
          for (JsonNode command : vector.get("commands")) {
            JsonNode given = JSON.objectNode().set("command", command);
            assertThat(Vectors.decided(store, "command", given).get("does"))
                .as("%s", command)
                .isEqualTo(vector.get("does"));
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

  @TestFactory
  Stream<DynamicTest> anAnswerBehindACommandIsItsToken() {
    return Vectors.tests(
        "S1-positions",
        "redis",
        "tokens",
        vector -> {
          Lineage found = Values.lineage(decided("token", vector).get("lineage"));
          Lineage expected = Values.lineage(vector.get("lineage"));
          assertThat(found.writes().stream().map(write -> write.writtenAt(0)).toList())
              .isEqualTo(expected.writes().stream().toList());
          assertThat(found.incomplete()).isEqualTo(expected.incomplete());
        });
  }

  @TestFactory
  Stream<DynamicTest> commandsThatAreSentAtOnceAreJudgedTogether() {
    return Vectors.tests(
        "S2-commands",
        "redis",
        "batches",
        vector ->
            decided("batch", vector)
                .properties()
                .forEach(each -> assertThat(each.getValue()).isEqualTo(vector.get(each.getKey()))));
  }
}
