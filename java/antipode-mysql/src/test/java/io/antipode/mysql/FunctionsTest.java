package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which functions a statement calls: long texts; the rest are vectors. */
class FunctionsTest {
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
