package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Lineages of transactions that are read from a binary log. */
class MySqlEventsTest {
  private static final String UUID = "11111111-2222-3333-4444-555555555555";

  /** They name their place alone, several of them each its own. */
  @Test
  void numbersOfMariaDbAskNobody() {
    assertThat(MySqlEvents.lineage("notes", " 0-1-5,2-7-9").writes())
        .extracting(write -> write.key() + "@" + write.version())
        .containsExactlyInAnyOrder("0.1@5", "2.7@9");
  }

  /** They may have gaps. */
  @Test
  void numbersOfMySqlNeedAPrimary() {
    assertThatThrownBy(() -> MySqlEvents.lineage("notes", UUID + ":5"))
        .isInstanceOf(ConfigurationException.class);
  }

  /** Nobody is asked: no server waits for it, or one would wait for nothing. */
  @Test
  void aForgedGtidIsAnError() {
    List<String> forged =
        List.of(
            "",
            "ANONYMOUS",
            "0-1",
            "0-1-0",
            "0-1-99999999999999999999",
            "0-1-5; DROP TABLE notes",
            UUID,
            UUID + ":0",
            UUID + ":5-3",
            UUID + ":9223372036854775807",
            UUID + ":1'");
    for (String gtid : forged) {
      assertThatThrownBy(() -> MySqlEvents.lineage("notes", gtid))
          .as(gtid)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
