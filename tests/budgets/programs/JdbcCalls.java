import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.function.UnaryOperator;
import javax.sql.DataSource;

/** Connections of a pool of HikariCP. */
final class JdbcCalls {
  private static final String USER = "app";

  private JdbcCalls() {}

  static void countMySql(String url) throws Exception {
    try (MySqlShim shim = MySqlShim.builder("posts", url).user(USER, USER).register()) {
      count("MySQL", url + "?trackSessionState=true", shim::instrument);
    }
  }

  static void countPostgreSql(String url) throws Exception {
    try (PostgreSqlShim shim = PostgreSqlShim.builder("posts", url).user(USER, USER).register()) {
      count("PostgreSQL", url, shim::instrument);
    }
  }

  private static void count(String store, String url, UnaryOperator<DataSource> instrument)
      throws Exception {
    try (HikariDataSource plain = pool(url);
        HikariDataSource pool = pool(url)) {
      DataSource ours = instrument.apply(pool);
      String release;
      try (Connection connection = plain.getConnection();
          Statement statement = connection.createStatement()) {
        statement.execute("CREATE TABLE IF NOT EXISTS budget (id INT PRIMARY KEY, n INT)");
        statement.execute("DELETE FROM budget");
        statement.execute("INSERT INTO budget VALUES (1, 1)");
        release = connection.getMetaData().getDriverVersion().split(" ", 2)[0];
      }
      String driver = "JDBC of " + store;
      Counting.compare(driver + ": SELECT", driver, release, () -> select(ours), () -> select(plain));
      Counting.compare(driver + ": UPDATE", driver, release, () -> update(ours), () -> update(plain));
      Counting.compare(
          driver + ": transaction of 2 UPDATEs", driver, release, () -> commit(ours), () -> commit(plain));
    }
  }

  private static HikariDataSource pool(String url) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(USER);
    config.setPassword(USER);
    config.setMaximumPoolSize(1);
    return new HikariDataSource(config);
  }

  private static void select(DataSource of) throws SQLException {
    try (Connection connection = of.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT n FROM budget WHERE id = 1")) {
      rows.next();
    }
  }

  private static void update(DataSource of) throws SQLException {
    try (Connection connection = of.getConnection()) {
      update(connection);
    }
  }

  private static void update(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("UPDATE budget SET n = 1 - n WHERE id = 1");
    }
  }

  private static void commit(DataSource of) throws SQLException {
    try (Connection connection = of.getConnection()) {
      connection.setAutoCommit(false);
      update(connection);
      update(connection);
      connection.commit();
    }
  }
}
