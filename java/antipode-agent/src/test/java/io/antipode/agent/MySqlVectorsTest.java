package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors of MySQL and MariaDB: what their shim decides without its server. */
class MySqlVectorsTest {
  private static final List<String> FLAVORS = List.of("mariadb", "mysql");

  private static JsonNode decided(String store, String kind, JsonNode given) {
    return Decisions.decide(
        JsonNodeFactory.instance
            .objectNode()
            .put("store", store)
            .put("kind", kind)
            .set("given", given));
  }

  /** Returns a test for each vector of MySQL and of MariaDB: an answer has what the vector has. */
  private static Stream<DynamicTest> ofFlavors(
      String folder, String kind, String decision, String... fields) {
    return FLAVORS.stream()
        .flatMap(
            store ->
                Vectors.tests(
                    folder,
                    store,
                    kind,
                    vector -> {
                      JsonNode found = decided(store, decision, vector);
                      for (String field : fields) {
                        assertThat(found.get(field)).isEqualTo(vector.get(field));
                      }
                    }));
  }

  @TestFactory
  Stream<DynamicTest> aLookSaysWhatTheServersStateProves() {
    return FLAVORS.stream()
        .flatMap(
            store ->
                Vectors.tests(
                    "S1-positions",
                    store,
                    "looks",
                    vector -> {
                      JsonNode statuses = decided(store, "look_at", vector).get("statuses");
                      assertThat(statuses).hasSameSizeAs(vector.get("writes"));
                      for (int nth = 0; nth < statuses.size(); nth++) {
                        assertThat(statuses.get(nth))
                            .isEqualTo(vector.at("/writes/" + nth + "/status"));
                      }
                    }));
  }

  @TestFactory
  Stream<DynamicTest> aCommitIsNamedByTheRunOfItsNumber() {
    return FLAVORS.stream()
        .flatMap(
            store ->
                Vectors.tests(
                    "S1-positions",
                    store,
                    "commits",
                    vector -> {
                      JsonNode writes = decided(store, "commits", vector).get("writes");
                      JsonNode sessions = vector.get("sessions");
                      for (int nth = 0; nth < sessions.size(); nth++) {
                        JsonNode commits = sessions.get(nth).get("commits");
                        for (int each = 0; each < commits.size(); each++) {
                          assertThat(writes.get(nth).get(each))
                              .isEqualTo(commits.get(each).get("writes"));
                        }
                      }
                    }));
  }

  @TestFactory
  Stream<DynamicTest> aSetOfGtidsIsReadAsServersWriteIt() {
    return Vectors.tests(
        "S1-positions",
        "mysql",
        "sets",
        vector ->
            assertThat(decided("mysql", "gtid_set", vector).get("logs"))
                .isEqualTo(vector.get("logs")));
  }

  @TestFactory
  Stream<DynamicTest> aServersVariablesSayWhatItIsGoodFor() {
    return ofFlavors("S1-positions", "servers", "server", "waits", "numbers");
  }

  @TestFactory
  Stream<DynamicTest> aStatementDoesWhatItsTextSays() {
    return FLAVORS.stream()
        .flatMap(
            store ->
                Vectors.tests(
                    "S2-commands",
                    store,
                    "groups",
                    vector -> {
                      for (JsonNode command : vector.get("commands")) {
                        ObjectNode given = JsonNodeFactory.instance.objectNode();
                        given.set("command", command);
                        assertThat(decided(store, "command", given).get("does"))
                            .as(command.asText())
                            .isEqualTo(vector.get("does"));
                      }
                    }));
  }
}
