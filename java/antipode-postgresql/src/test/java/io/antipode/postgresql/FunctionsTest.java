package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Functions that an application declares to write nothing. */
class FunctionsTest {
  private static PostgreSqlShim.Builder builder() {
    return PostgreSqlShim.builder("orders", "jdbc:postgresql://localhost/app");
  }

  @Test
  void namesAreComparedInAnyCase() {
    try (PostgreSqlShim shim =
        builder().readonlyFunctions(Set.of("Reading", "app.größe")).register()) {
      assertThat(shim.readonlyFunctions()).containsExactlyInAnyOrder("reading", "app.größe");
    }
  }

  /** In a statement, quotes without a name stand for any name in quotes. */
  @ParameterizedTest
  @ValueSource(strings = {"\"\"", "app.\"\"", "\"reading\"", "`reading`", "reading()", "a.b.c", ""})
  void whatIsNoNameIsRefused(String name) {
    assertThatThrownBy(() -> builder().readonlyFunctions(Set.of(name)))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("readonlyFunctions");
  }
}
