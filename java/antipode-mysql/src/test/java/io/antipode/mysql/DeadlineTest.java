package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.lab.Lab;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** When a barrier ends, wherever it waits, at a replica that is late. */
@Tag("lab")
class DeadlineTest {
  /** Nothing written here comes before the tests are over. */
  private static final int LAG_MS = 600_000;

  private static final Duration DEADLINE = Duration.ofMillis(300);
  private static final Duration LATE = Duration.ofMillis(100);

  /** How often it is measured at most, for others may be at work on the machine: one will do. */
  private static final int TRIES = 5;

  private interface Wait {
    void on(DataSource reads, Connection connection) throws SQLException;
  }

  private static HikariDataSource pool(String url) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername("app");
    config.setPassword("app");
    config.setMaximumPoolSize(2);
    return new HikariDataSource(config);
  }

  private static void execute(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  /** Returns by how much a wait outlasted its barrier, or the best of several. */
  private static Duration late(DataSource writes, DataSource reads, Wait wait) throws SQLException {
    Duration best = Duration.ofDays(1);
    for (int left = TRIES; left > 0 && best.minus(DEADLINE).compareTo(LATE) >= 0; left--) {
      try (ScopeBlock request = Antipode.scope();
          Connection before = reads.getConnection()) {
        try (Connection connection = writes.getConnection()) {
          execute(connection, "INSERT INTO kept VALUES ()");
        }
        long startedNs = System.nanoTime();
        Barriers.barrier(BarrierOptions.timeout(DEADLINE).atRead());
        assertThatThrownBy(() -> wait.on(reads, before))
            .isInstanceOf(BarrierTimeoutException.class);
        Duration waited = Duration.ofNanos(System.nanoTime() - startedNs);
        assertThat(waited).isGreaterThanOrEqualTo(DEADLINE);
        best = waited.compareTo(best) < 0 ? waited : best;
      }
    }
    return best.minus(DEADLINE);
  }

  private static void readFirst(DataSource reads, Connection unused) throws SQLException {
    try (Connection connection = reads.getConnection()) {
      execute(connection, "SELECT 1 FROM kept");
    }
  }

  private static void read(DataSource unused, Connection connection) throws SQLException {
    execute(connection, "SELECT 1 FROM kept");
  }

  private static void now(DataSource unused, Connection unread) {
    Barriers.barrier(BarrierOptions.timeout(DEADLINE));
  }

  @ParameterizedTest
  @ValueSource(strings = {"mysql", "mariadb"})
  void aBarrierEndsAtItsDeadline(String store) throws IOException, SQLException {
    try (Lab lab = Lab.start(store, LAG_MS)) {
      String url = "jdbc:" + store + "://127.0.0.1:" + Lab.port(lab.url()) + "/app";
      String otherUrl = "jdbc:" + store + "://127.0.0.1:" + Lab.port(lab.otherUrl()) + "/app";
      try (MySqlShim primary = MySqlShim.builder("late", url).user("app", "app").register();
          MySqlShim replica =
              MySqlShim.builder("late", otherUrl)
                  .user("app", "app")
                  .readsFrom(ReadsFrom.REPLICA)
                  .register();
          HikariDataSource writing = pool(url);
          HikariDataSource reading = pool(otherUrl)) {
        try (Connection connection = writing.getConnection()) {
          execute(connection, "CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY)");
        }
        DataSource writes = primary.instrument(writing);
        DataSource reads = replica.instrument(reading);
        assertThat(late(writes, reads, DeadlineTest::readFirst))
            .as("in getConnection()")
            .isLessThan(LATE);
        assertThat(late(writes, reads, DeadlineTest::read)).as("held").isLessThan(LATE);
        assertThat(late(writes, reads, DeadlineTest::now)).as("now").isLessThan(LATE);
      }
    }
  }
}
