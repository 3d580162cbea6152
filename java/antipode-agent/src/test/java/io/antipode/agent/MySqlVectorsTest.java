package io.antipode.agent;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The vectors that MySQL and MariaDB alone have. */
class MySqlVectorsTest {
  private static final List<String> FLAVORS = List.of("mariadb", "mysql");

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
                      JsonNode found = Vectors.decided(store, decision, vector);
                      for (String field : fields) {
                        assertThat(found.get(field)).isEqualTo(vector.get(field));
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
                      JsonNode writes = Vectors.decided(store, "commits", vector).get("writes");
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
            assertThat(Vectors.decided("mysql", "gtid_set", vector).get("logs"))
                .isEqualTo(vector.get("logs")));
  }

  @TestFactory
  Stream<DynamicTest> aServersVariablesSayWhatItIsGoodFor() {
    return ofFlavors("S1-positions", "servers", "server", "waits", "numbers");
  }

  @TestFactory
  Stream<DynamicTest> aStatementShowsTheLineagesOfItsRows() {
    return ofFlavors("S3-stored", "selects", "select", "columns");
  }

  @TestFactory
  Stream<DynamicTest> whoFindsNoRowLooksForItsDeletion() {
    return ofFlavors("S3-stored", "sought", "sought", "sought");
  }
}
