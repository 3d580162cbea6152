package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import io.antipode.lineage.WriteId;
import org.junit.jupiter.api.Test;

/** Lineages of commits that are read from the log. */
class PostgreSqlEventsTest {
  private static final String SYSTEM = "7421987654321098765";

  /** Its log has one name only, as in other languages. */
  @Test
  void aCommitOfTheFirstTimelineAsksNobody() {
    WriteId write =
        PostgreSqlEvents.lineage("app", "16/B374D848", SYSTEM, 1).writes().iterator().next();
    assertThat(write.key()).isEqualTo(SYSTEM + "/1-0");
    assertThat(write.version()).isEqualTo(0x16_B374_D848L);
    assertThat(write.isCovering()).isFalse();
  }

  /** Nobody is asked. */
  @Test
  void aForgedPositionIsAnError() {
    for (String lsn : new String[] {"", "0/0", "16-B374D848", "1/123456789", "1/2' OR 1=1"}) {
      assertThatThrownBy(() -> PostgreSqlEvents.lineage("app", lsn))
          .isInstanceOf(IllegalArgumentException.class);
    }
    for (String system : new String[] {"", "0", "x", "-1"}) {
      assertThatThrownBy(() -> PostgreSqlEvents.lineage("app", "0/9", system, 1))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> PostgreSqlEvents.lineage("app", "0/9", SYSTEM, 0))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Where no client reaches it, the error says so. */
  @Test
  void whatIsMissingNeedsAPrimary() {
    assertThatThrownBy(() -> PostgreSqlEvents.lineage("app", "0/9"))
        .isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> PostgreSqlEvents.lineage("app", "0/9", SYSTEM, 2))
        .isInstanceOf(ConfigurationException.class);
  }
}
