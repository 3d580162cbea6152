package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Names of tables and keys in the statements that the jar brings. No server is asked. */
class PostgreSqlMigrationsTest {
  @Test
  void aTableKeepsItsNames() {
    List<String> statements =
        PostgreSqlMigrations.rows("shop", "it's \"mine\"", List.of("shop", "Item"));
    String all = String.join("\n", statements);
    assertThat(all).doesNotContain("@").contains("\"shop\".\"it's \"\"mine\"\"_ap\"");
    assertThat(all).contains("SELECT 'it''s \"mine\"', g.k");
    assertThat(all).contains("NEW.\"Item\"::text").contains("OLD.\"shop\"::text");
    assertThat(statements).noneMatch(String::isBlank).hasSize(9);
  }

  /** Triggers run in the order of their names, which the server cuts. */
  @Test
  void theTriggersOfALongName() {
    String name = "t".repeat(60);
    String all = String.join("\n", PostgreSqlMigrations.rows("public", name, List.of("id")));
    assertThat(all).contains("CREATE TRIGGER \"0_" + "t".repeat(48) + "_ap\"");
  }

  @Test
  void whatAllTablesShare() {
    assertThat(PostgreSqlMigrations.promises()).hasSize(2);
    assertThat(PostgreSqlMigrations.history())
        .hasSize(2)
        .allMatch(each -> each.startsWith("CREATE OR REPLACE FUNCTION"));
    assertThatThrownBy(() -> PostgreSqlMigrations.rows("public", "t", List.of()))
        .isInstanceOf(ConfigurationException.class);
  }
}
