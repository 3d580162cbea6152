package io.antipode.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KillSwitchTest {
  @ParameterizedTest
  @ValueSource(strings = {"true", "TRUE", " True "})
  void trueDisables(String value) {
    assertThat(KillSwitch.isSet(value)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "false", "False", "1", "yes", "on"})
  void nothingElseDoes(String value) {
    assertThat(KillSwitch.isSet(value)).isFalse();
  }

  @Test
  void withoutItNothingIsDisabled() {
    assertThat(KillSwitch.isSet(null)).isFalse();
    assertThat(KillSwitch.isDisabled()).isFalse();
  }
}
