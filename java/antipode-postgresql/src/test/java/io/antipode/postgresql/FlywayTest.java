package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.migration.BaseJavaMigration;
import org.flywaydb.core.api.migration.Context;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The migrations of the jar, run by Flyway on PostgreSQL: as text, and in Java. */
@Tag("lab")
class FlywayTest {
  /** As the page has it: it asks for the key. */
  public static final class V2__LineagesOfOrders extends BaseJavaMigration {
    @Override
    public void migrate(Context context) throws SQLException {
      for (String each : PostgreSqlMigrations.rows(context.getConnection(), "orders")) {
        execute(context.getConnection(), each);
      }
    }
  }

  private static void execute(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      boolean unused = statement.execute(sql);
    }
  }

  private static HikariDataSource pool(String url) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername("app");
    config.setPassword("app");
    return new HikariDataSource(config);
  }

  /** After them rows keep what they depend on, and promises have their table. */
  @Test
  void whatTheJarBringsIsRun(@TempDir Path scripts) throws IOException, SQLException {
    Files.writeString(
        scripts.resolve("V1__orders.sql"),
        "CREATE TABLE orders (id int PRIMARY KEY, body text);\n\n"
            + String.join(";\n\n", PostgreSqlMigrations.promises())
            + ";\n");
    try (Lab lab = Lab.start("postgresql");
        HikariDataSource plain =
            pool("jdbc:postgresql://127.0.0.1:" + Lab.port(lab.url()) + "/app")) {
      Flyway flyway =
          Flyway.configure()
              .dataSource(plain)
              .locations("filesystem:" + scripts)
              .javaMigrations(new V2__LineagesOfOrders())
              .load();
      assertThat(flyway.migrate().migrationsExecuted).isEqualTo(2);
      try (PostgreSqlShim shim =
              PostgreSqlShim.builder("orders", plain.getJdbcUrl()).user("app", "app").register();
          Connection connection = plain.getConnection()) {
        execute(connection, "SELECT id FROM antipode_promises");
        assertThat(learned(shim.instrument(plain, Set.of("orders")))).isTrue();
      }
    }
  }

  /** Returns whether who reads a row depends on what its writer depended on elsewhere. */
  private static boolean learned(DataSource orders) throws SQLException {
    WriteId cause = WriteId.of("elsewhere", "log", 7);
    try (ScopeBlock request = Antipode.scope();
        Connection connection = orders.getConnection()) {
      Recording.recordWrite(cause);
      execute(connection, "INSERT INTO orders VALUES (1, 'a')");
    }
    try (ScopeBlock request = Antipode.scope()) {
      try (Connection connection = orders.getConnection();
          Statement statement = connection.createStatement();
          ResultSet rows = statement.executeQuery("SELECT body FROM orders WHERE id = 1")) {
        assertThat(rows.next()).isTrue();
      }
      return Antipode.current().writes().stream()
          .anyMatch(write -> write.datastore().equals("elsewhere"));
    }
  }
}
