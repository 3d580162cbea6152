package io.antipode.programs;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.lineage.WriteId;
import io.antipode.mysql.MySqlMigrations;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlMigrations;
import io.antipode.postgresql.PostgreSqlShim;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.migration.BaseJavaMigration;
import org.flywaydb.core.api.migration.Context;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The migrations of the jars, run by Flyway: as text, and in Java. */
@Tag("lab")
class MigrationsTest {
  /** As the pages have it: it asks for the key. */
  public static final class V2__LineagesOfOrders extends BaseJavaMigration {
    private final boolean isPostgreSql;

    V2__LineagesOfOrders(boolean isPostgreSql) {
      this.isPostgreSql = isPostgreSql;
    }

    @Override
    public void migrate(Context context) throws SQLException {
      Connection connection = context.getConnection();
      List<String> statements =
          isPostgreSql
              ? PostgreSqlMigrations.rows(connection, "orders")
              : MySqlMigrations.rows(connection, "orders");
      for (String each : statements) {
        execute(connection, each);
      }
    }
  }

  private static void execute(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      boolean unused = statement.execute(sql);
    }
  }

  private static HikariDataSource pool(String url, String user, String password) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(user);
    config.setPassword(password);
    config.setMaximumPoolSize(4);
    return new HikariDataSource(config);
  }

  /** Triggers need that where there is a binary log; the lab's administrator sets it. */
  private static void allowTriggers(String url) throws SQLException {
    try (HikariDataSource administrators = pool(url, "root", "antipode");
        Connection connection = administrators.getConnection()) {
      execute(connection, "SET GLOBAL log_bin_trust_function_creators = ON");
    }
  }

  /** After them rows keep what they depend on, and promises have their table. */
  @ParameterizedTest
  @ValueSource(strings = {"mysql", "mariadb", "postgresql"})
  void whatTheJarBringsIsRun(String store, @TempDir Path scripts) throws IOException, SQLException {
    boolean isPostgreSql = store.equals("postgresql");
    List<String> promises =
        isPostgreSql ? PostgreSqlMigrations.promises() : MySqlMigrations.promises();
    Path unused =
        Files.writeString(
            scripts.resolve("V1__orders.sql"),
            "CREATE TABLE orders (id INT PRIMARY KEY, body TEXT);\n\n"
                + String.join(";\n\n", promises)
                + ";\n");
    try (Lab lab = Lab.start(store)) {
      String url = "jdbc:" + store + "://127.0.0.1:" + Lab.port(lab.url()) + "/app";
      if (!isPostgreSql) {
        allowTriggers(url);
      }
      try (HikariDataSource plain = pool(url, "app", "app")) {
        Flyway flyway =
            Flyway.configure()
                .dataSource(plain)
                .locations("filesystem:" + scripts)
                .javaMigrations(new V2__LineagesOfOrders(isPostgreSql))
                .load();
        assertThat(flyway.migrate().migrationsExecuted).isEqualTo(2);
        try (Connection connection = plain.getConnection()) {
          execute(connection, "SELECT id FROM antipode_promises");
        }
        assertThat(isPostgreSql ? inPostgreSql(plain) : inMySql(plain)).isTrue();
      }
    }
  }

  private static boolean inPostgreSql(HikariDataSource plain) throws SQLException {
    try (PostgreSqlShim shim =
        PostgreSqlShim.builder("orders", plain.getJdbcUrl()).user("app", "app").register()) {
      return learned(shim.instrument(plain, Set.of("orders")));
    }
  }

  private static boolean inMySql(HikariDataSource plain) throws SQLException {
    try (MySqlShim shim =
        MySqlShim.builder("orders", plain.getJdbcUrl()).user("app", "app").register()) {
      return learned(shim.instrument(plain, Set.of("orders")));
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
