package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** What a server says of itself; which servers are good for what are vectors. */
class FactsTest {
  /**
   * Asking again would not help: the outcome is undecidable at once, not a wait until it is late.
   */
  @Test
  void aPositionThatCannotBeReadIsALastingRefusal() {
    Map<String, String> variables =
        Map.of("version", "9.7.0", "server_id", "1", "gtid_mode", "ON", "gtid_executed", "nothing");
    RefusedException error =
        catchThrowableOfType(RefusedException.class, () -> Facts.of(variables, "1", ""));
    assertThat(error).isNotNull().hasMessageContaining("gtid_executed");
    assertThat(error.isPassing()).isFalse();
  }
}
