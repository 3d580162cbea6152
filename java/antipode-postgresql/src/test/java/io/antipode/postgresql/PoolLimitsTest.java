package io.antipode.postgresql;

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
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What ends a wait in getConnection() besides the barrier's own time, at a standby that is late.
 */
@Tag("lab")
class PoolLimitsTest {
  /** Nothing written here comes before the tests are over. */
  private static final int LAG_MS = 600_000;

  private static final Duration LONG = Duration.ofSeconds(25);
  private static final Duration MUCH_LESS = Duration.ofSeconds(20);

  /** Of a barrier that ends at its deadline, and by how much it may be late. */
  private static final Duration DEADLINE = Duration.ofMillis(300);

  private static final Duration LATE = Duration.ofMillis(100);

  /** How often it is measured at most, for others may be at work on the machine: one will do. */
  private static final int TRIES = 5;

  private static Lab lab;
  private static PostgreSqlShim primary;
  private static PostgreSqlShim standby;
  private static HikariDataSource writing;
  private static HikariDataSource reading;
  private static DataSource writes;
  private static DataSource reads;

  @BeforeAll
  static void start() throws IOException, SQLException {
    lab = Lab.start("postgresql", LAG_MS);
    primary = builder(lab.url()).register();
    standby = builder(lab.otherUrl()).readsFrom(ReadsFrom.REPLICA).register();
    writing = pool(lab.url());
    reading = pool(lab.otherUrl());
    reading.setConnectionTimeout(1_000);
    writes = primary.instrument(writing);
    reads = standby.instrument(reading);
    try (Connection connection = writing.getConnection()) {
      execute(connection, "CREATE TABLE kept (id serial)");
    }
  }

  @AfterAll
  static void stop() throws IOException {
    writing.close();
    reading.close();
    primary.close();
    standby.close();
    lab.close();
  }

  private static String url(String servers) {
    return "jdbc:postgresql://127.0.0.1:" + Lab.port(servers) + "/app";
  }

  private static PostgreSqlShim.Builder builder(String servers) {
    return PostgreSqlShim.builder("limits", url(servers)).user("app", "app");
  }

  private static HikariDataSource pool(String servers) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url(servers));
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

  /** Lets the next read of the current scope wait for a write that does not come. */
  private static void write() throws SQLException {
    try (Connection connection = writes.getConnection()) {
      execute(connection, "INSERT INTO kept DEFAULT VALUES");
    }
    Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
  }

  /** Both waits together last no longer than the query may, once the pool knows that. */
  @Test
  void theTimeLimitOfAQuery() throws SQLException {
    reading.setConnectionTimeout(30_000);
    for (int nth = 0; nth < 2; nth++) {
      boolean isKnown = nth > 0;
      try (ScopeBlock request = Antipode.scope()) {
        if (isKnown) {
          write();
        }
        long startedNs = System.nanoTime();
        try (Connection connection = reads.getConnection();
            Statement statement = connection.createStatement()) {
          statement.setQueryTimeout(1);
          if (isKnown) {
            assertThatThrownBy(() -> statement.executeQuery("SELECT 1"))
                .isInstanceOf(SQLTimeoutException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - startedNs)).isLessThan(MUCH_LESS);
          }
          statement.setQueryTimeout(isKnown ? 0 : 1);
        }
      }
    }
    reading.setConnectionTimeout(1_000);
  }

  /** The connection is there in the time of its pool, and the read that it is for then waits. */
  @Test
  void theTimeLimitOfAPool() throws SQLException {
    try (ScopeBlock request = Antipode.scope()) {
      write();
      long startedNs = System.nanoTime();
      try (Connection connection = reads.getConnection();
          Statement statement = connection.createStatement()) {
        assertThat(Duration.ofNanos(System.nanoTime() - startedNs)).isLessThan(MUCH_LESS);
        statement.setQueryTimeout(1);
        assertThatThrownBy(() -> statement.executeQuery("SELECT 1"))
            .isInstanceOf(SQLTimeoutException.class);
        statement.setQueryTimeout(0);
      }
    }
  }

  /** The thread is interrupted, stays so, and gets an error of JDBC's. */
  @Test
  void anInterrupt() throws Exception {
    reading.setConnectionTimeout(30_000);
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread request =
        new Thread(
            () -> {
              try (ScopeBlock scope = Antipode.scope()) {
                write();
                Thread.currentThread().interrupt();
                reads.getConnection().close();
              } catch (SQLException error) {
                thrown.set(Thread.currentThread().isInterrupted() ? error.getCause() : error);
              }
            });
    request.start();
    request.join();
    assertThat(thrown.get()).isInstanceOf(InterruptedException.class);
    reading.setConnectionTimeout(1_000);
  }

  private interface Read {
    void of(Connection connection) throws SQLException;
  }

  /** Returns by how much a wait outlasted its barrier, or the best of several. */
  private static Duration late(Callable<Connection> before, Read read) throws Exception {
    Duration best = LONG;
    for (int left = TRIES; left > 0 && best.minus(DEADLINE).compareTo(LATE) >= 0; left--) {
      try (ScopeBlock request = Antipode.scope()) {
        Connection first = before.call();
        try (Connection connection = writes.getConnection()) {
          execute(connection, "INSERT INTO kept DEFAULT VALUES");
        }
        long startedNs = System.nanoTime();
        Barriers.barrier(BarrierOptions.timeout(DEADLINE).atRead());
        assertThatThrownBy(() -> read.of(first)).isInstanceOf(BarrierTimeoutException.class);
        Duration waited = Duration.ofNanos(System.nanoTime() - startedNs);
        assertThat(waited).isGreaterThanOrEqualTo(DEADLINE);
        best = waited.compareTo(best) < 0 ? waited : best;
        if (first != null) {
          first.close();
        }
      }
    }
    return best.minus(DEADLINE);
  }

  private static void read(Connection connection) throws SQLException {
    execute(connection, "SELECT 1 FROM kept");
  }

  /** Wherever it waits: before a connection is there, on one, or on the library's own. */
  @Test
  void aBarrierEndsAtItsDeadline() throws Exception {
    assertThat(
            late(
                () -> null,
                none -> {
                  try (Connection connection = reads.getConnection()) {
                    read(connection);
                  }
                }))
        .as("in getConnection()")
        .isLessThan(LATE);
    assertThat(late(reads::getConnection, PoolLimitsTest::read)).as("held").isLessThan(LATE);
    assertThat(late(() -> null, none -> Barriers.barrier(BarrierOptions.timeout(DEADLINE))))
        .as("now")
        .isLessThan(LATE);
  }
}
