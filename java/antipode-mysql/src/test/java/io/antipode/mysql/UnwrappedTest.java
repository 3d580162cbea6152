package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is written on a driver's own connection, and left open when its pool gets it back. */
@Tag("lab")
class UnwrappedTest {
  private static void execute(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      boolean unused = statement.execute(sql);
    }
  }

  private static Connection own(Connection connection) throws SQLException {
    return connection.isWrapperFor(org.mariadb.jdbc.Connection.class)
        ? connection.unwrap(org.mariadb.jdbc.Connection.class)
        : connection.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
  }

  /** It is in doubt for who wrote it; who commits it has its position. */
  @ParameterizedTest
  @ValueSource(strings = {"mysql", "mariadb"})
  void whatIsLeftOpenIsOfWhoCommitsIt(String store) throws IOException, SQLException {
    try (Lab lab = Lab.start(store)) {
      String url = "jdbc:" + store + "://127.0.0.1:" + Lab.port(lab.url()) + "/app";
      HikariConfig config = new HikariConfig();
      config.setJdbcUrl(url);
      config.setUsername("app");
      config.setPassword("app");
      config.setMaximumPoolSize(1);
      try (MySqlShim shim = MySqlShim.builder("unwrapped", url).user("app", "app").register();
          HikariDataSource plain = new HikariDataSource(config)) {
        DataSource pool = shim.instrument(plain);
        try (Connection connection = pool.getConnection()) {
          execute(connection, "CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY)");
        }
        try (ScopeBlock request = Antipode.scope()) {
          try (Connection connection = pool.getConnection()) {
            Connection unseen = own(connection);
            execute(unseen, "BEGIN");
            execute(unseen, "INSERT INTO kept VALUES ()");
          }
          assertThat(Antipode.current().incomplete()).isNotEmpty();
        }
        try (ScopeBlock request = Antipode.scope();
            Connection connection = pool.getConnection()) {
          execute(connection, "BEGIN");
          assertThat(Antipode.current().writes()).isNotEmpty();
        }
      }
    }
  }
}
