package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Which functions a statement calls: names that are declared, and long texts; the rest are vectors.
 */
class FunctionsTest {
  @Test
  void namesAreComparedInAnyCase() {
    assertThat(Functions.declared(Set.of("Reading", "app.distance")))
        .containsExactlyInAnyOrder("reading", "app.distance");
  }

  @ParameterizedTest
  @ValueSource(strings = {"reading()", "`reading`", "a.b.c", ""})
  void whatIsNoNameIsRefused(String name) {
    assertThatThrownBy(() -> Functions.declared(Set.of(name)))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("readonlyFunctions");
  }

  /** Nothing that a user may send keeps the client busy, or fills its stack. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "y",
        "f(1, ",
        "\"a\" (",
        "f   ",
        "next ",
        "NEXT VALUE ",
        "/*;",
        "';",
        "\";",
        "`;",
        "\\;'",
        "(;",
        "insert into "
      })
  void longTextsTakeLinearTime(String unit) {
    String sql = "SELECT f() " + unit.repeat(20_000);
    Assertions.assertTimeout(
        Duration.ofSeconds(20), () -> assertThat(Statements.effects(sql)).isNotNull());
    Assertions.assertTimeout(
        Duration.ofSeconds(20),
        () -> assertThat(Functions.called(unit.repeat(20_000))).isNotNull());
  }
}
