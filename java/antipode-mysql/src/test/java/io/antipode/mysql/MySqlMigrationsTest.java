package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The statements that the jar brings, with the names of a table in them. */
class MySqlMigrationsTest {
  @Test
  void aTableKeepsItsNames() {
    List<String> statements = MySqlMigrations.rows("shop.it's `mine`", List.of("shop", "Item"));
    String all = String.join("\n", statements);
    assertThat(all.replaceAll("@antipode_(lineage|passed|until)", "")).doesNotContain("@");
    assertThat(all).contains("ALTER TABLE `shop`.`it's ``mine``` ADD COLUMN");
    assertThat(all).contains("SELECT 'it''s `mine`', IF(LENGTH(CONCAT_WS(':', ");
    assertThat(all).contains("CAST(OLD.`Item` AS BINARY)");
    assertThat(statements).noneMatch(String::isBlank).hasSize(5);
  }

  /** In the schema that is the default where the migration runs. */
  @Test
  void aTableWithoutItsSchema() {
    assertThat(MySqlMigrations.rows("orders", List.of("id")))
        .anyMatch(each -> each.startsWith("ALTER TABLE `orders` ADD COLUMN `_ap`"))
        .anyMatch(each -> each.contains("IF(LENGTH(CAST(OLD.`id` AS BINARY)) > 512"));
  }

  /** The server takes no longer names of triggers. */
  @Test
  void theTriggersOfALongName() {
    String all = String.join("\n", MySqlMigrations.rows("t".repeat(60), List.of("id")));
    assertThat(all).contains("CREATE TRIGGER `" + "t".repeat(50) + "_ap_insert`");
  }

  @Test
  void whatHasNoKeyIsRefused() {
    assertThat(MySqlMigrations.promises()).hasSize(1);
    assertThatThrownBy(() -> MySqlMigrations.rows("t", List.of()))
        .isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> MySqlMigrations.main(new String[] {"orders"}))
        .isInstanceOf(ConfigurationException.class);
  }
}
