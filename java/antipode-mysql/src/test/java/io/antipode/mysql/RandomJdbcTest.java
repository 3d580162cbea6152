package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What programs do with JDBC, at random, compared with what rows say: no write is lost, no read is
 * early. {@code -Dantipode.random.steps} says how many steps each pool makes, {@code
 * -Dantipode.random.seed} which, {@code -Dantipode.random.pool} a part of the options of the pools.
 */
@Tag("lab")
class RandomJdbcTest {
  private static final int STEPS = Integer.getInteger("antipode.random.steps", 50);
  private static final String POOL = System.getProperty("antipode.random.pool", "");
  private static final long SEED = Long.getLong("antipode.random.seed", System.nanoTime());
  private static final int LAG_MS = 100;
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final Map<String, Lab> LABS = new HashMap<>();

  private static final List<String> TABLES =
      List.of(
          "CREATE TABLE counted (id INT PRIMARY KEY, v BIGINT)",
          "CREATE TABLE others (id INT PRIMARY KEY)",
          "INSERT INTO counted VALUES (1, 0)",
          "INSERT INTO others VALUES (1), (2), (3), (4), (5)",
          "CREATE PROCEDURE reading() READS SQL DATA SELECT v FROM counted",
          "CREATE PROCEDURE counting() UPDATE counted SET v = v + 1 WHERE id = 1");

  private static final List<String> DRIVERS =
      List.of("com.mysql.cj.", "org.mariadb.jdbc.", "com.zaxxer.hikari.");
  private static final String COUNT = "UPDATE counted SET v = v + 1 WHERE id = 1";

  private final Random random = new Random(SEED);
  private final List<String> done = new ArrayList<>();
  private final List<String> wrong = new ArrayList<>();
  private int judged;

  /** One call that a program may make; what it throws is the application's. */
  @FunctionalInterface
  private interface Step {
    void on(Connection connection) throws SQLException;
  }

  @AfterAll
  static void stop() throws IOException {
    for (Lab lab : LABS.values()) {
      lab.close();
    }
  }

  @ParameterizedTest(name = "{0} {1}")
  @CsvSource({
    "mysql, trackSessionState=false",
    "mysql, trackSessionState=true",
    "mysql, useServerPrepStmts=true",
    "mysql, useCursorFetch=true&defaultFetchSize=2",
    "mariadb, tcpKeepAlive=true",
    "mariadb, useServerPrepStmts=true",
  })
  void losesNoWriteAndReadsNothingTooEarly(String store, String options) throws Exception {
    assumeTrue(options.contains(POOL));
    Lab lab = lab(store);
    String url = jdbc(store, lab.url());
    String otherUrl = jdbc(store, lab.otherUrl());
    String name = "random-" + store + options.hashCode();
    MySqlShim primary = MySqlShim.builder(name, url).user("app", "app").register();
    MySqlShim replica =
        MySqlShim.builder(name, otherUrl)
            .user("app", "app")
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    try (primary;
        replica;
        HikariDataSource writing = pool(url + "?" + options);
        HikariDataSource reading = pool(otherUrl + "?" + options);
        Connection truth = DriverManager.getConnection(url, "app", "app");
        Connection shown = DriverManager.getConnection(otherUrl, "app", "app")) {
      DataSource writes = primary.instrument(writing);
      DataSource reads = replica.instrument(reading);
      for (int steps = 0; steps < STEPS && wrong.isEmpty(); steps += done.size()) {
        done.clear();
        request(writes, reads, truth, shown);
      }
    }
    assertThat(wrong).as("seed %d of %s?%s", SEED, store, options).isEmpty();
    assertThat(judged).as("reads and requests that were judged").isPositive();
  }

  private static String jdbc(String store, String url) {
    return "jdbc:" + store + "://127.0.0.1:" + Lab.port(url) + "/app";
  }

  private static HikariDataSource pool(String url) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername("app");
    config.setPassword("app");
    config.setMaximumPoolSize(2);
    return new HikariDataSource(config);
  }

  /** Starts the servers of a store, once, with the tables. */
  private static Lab lab(String store) throws IOException, SQLException {
    if (!LABS.containsKey(store)) {
      Lab lab = Lab.start(store, LAG_MS);
      LABS.put(store, lab);
      try (Connection primary = DriverManager.getConnection(jdbc(store, lab.url()), "app", "app");
          Connection replica =
              DriverManager.getConnection(jdbc(store, lab.otherUrl()), "app", "app")) {
        for (String statement : TABLES) {
          execute(primary, statement);
        }
        long until = System.nanoTime() + SOON.toNanos();
        while (!hasThemAll(replica)) {
          assertThat(System.nanoTime()).as("tables at the replica").isLessThan(until);
        }
      }
    }
    return Objects.requireNonNull(LABS.get(store));
  }

  /** Whether the last of the tables and procedures is there. */
  private static boolean hasThemAll(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery(
                "SELECT 1 FROM information_schema.routines WHERE routine_name = 'counting'")) {
      return rows.next();
    }
  }

  private void request(DataSource writes, DataSource reads, Connection truth, Connection shown)
      throws SQLException {
    long before = value(truth);
    try (ScopeBlock request = Antipode.scope()) {
      try (Connection writing = writes.getConnection();
          Connection reading = reads.getConnection()) {
        for (int left = 2 + random.nextInt(10); left > 0; left--) {
          boolean isWriting = random.nextInt(3) > 0;
          attempt(isWriting ? "P" : "R", isWriting ? writing : reading, isWriting);
          if (random.nextInt(4) == 0) {
            readBack(reading, before, truth);
          }
        }
      } catch (SQLException | RuntimeException closing) {
        if (!isOfTheDriver(closing)) {
          throw closing;
        }
      }
      // The pool has rolled back what was open.
      long after = value(truth);
      Lineage lineage = Antipode.current();
      if (after != before && lineage.incomplete().isEmpty()) {
        Barriers.barrier(BarrierOptions.timeout(SOON));
        judge("lost", value(shown), after);
      }
    }
  }

  /** A barrier, at times a step of the replica's connection, then a read by it. */
  private void readBack(Connection reading, long before, Connection truth) throws SQLException {
    long committed = value(truth);
    if (committed == before || !Antipode.current().incomplete().isEmpty()) {
      return;
    }
    done.add("barrier");
    Barriers.barrier(BarrierOptions.timeout(SOON).atRead());
    if (random.nextBoolean()) {
      attempt("R", reading, false);
    }
    try {
      judge("early", value(reading), committed);
    } catch (StaleSnapshotException refused) {
      done.add("refused");
    } catch (SQLException error) {
      done.add("error"); // HikariCP gave the connection up after an error before.
    } catch (RuntimeException error) {
      giveUp(reading, error);
    }
  }

  private void judge(String what, long found, long committed) {
    judged++;
    if (found < committed) {
      wrong.add(what + ": " + found + " instead of " + committed + " after " + done);
    }
  }

  private void attempt(String where, Connection connection, boolean isWriting) {
    int number = random.nextInt(isWriting ? 29 : 21);
    done.add(where + number);
    try {
      step(number).on(connection);
    } catch (StaleSnapshotException refused) {
      done.add("refused");
    } catch (SQLException error) {
      done.add("error");
    } catch (RuntimeException error) {
      giveUp(connection, error);
    }
  }

  /** Ends a connection whose driver failed: nothing after it counts. */
  private void giveUp(Connection connection, RuntimeException error) {
    if (!isOfTheDriver(error)) {
      throw error;
    }
    done.add("misread");
    try {
      connection.abort(Runnable::run);
    } catch (SQLException closed) {
      // It is what was asked for.
    }
  }

  /**
   * Returns whether an error comes from the driver or the pool. A cancel may be late, and end what
   * the driver or the pool itself asks, in this request or the next: some replies that are cut so
   * are misread by Connector/J.
   */
  private static boolean isOfTheDriver(Exception error) {
    return Arrays.stream(error.getStackTrace())
        .map(StackTraceElement::getClassName)
        .filter(name -> !name.startsWith("java.") && !name.startsWith("jdk."))
        .findFirst()
        .filter(name -> DRIVERS.stream().anyMatch(name::startsWith))
        .isPresent();
  }

  /** The step of a number: those that write come last. */
  private Step step(int number) {
    return switch (number) {
      case 0 -> connection -> connection.setAutoCommit(false);
      case 1 -> connection -> connection.setAutoCommit(true);
      case 2 -> Connection::commit;
      case 3 -> Connection::rollback;
      case 4 -> statement("BEGIN");
      case 5 -> statement("COMMIT");
      case 6 -> statement("ROLLBACK");
      case 7 -> statement("SELECT * FROM no_such");
      case 8 -> statement("INSERT INTO others VALUES (1)");
      case 9 -> RandomJdbcTest::ping;
      case 10 -> connection -> drain(connection.getMetaData().getTables("app", null, "c%", null));
      case 11 -> RandomJdbcTest::call;
      case 12 -> RandomJdbcTest::describe;
      case 13 -> this::stream;
      case 14 -> RandomJdbcTest::prepared;
      case 15 -> RandomJdbcTest::value;
      case 16 -> statement("HELP 'select'");
      case 17 -> statement("SET autocommit = " + random.nextInt(2));
      case 18 -> statement("SELECT SLEEP(0)");
      case 19 -> cancelled("SELECT SLEEP(5)");
      case 20 -> statement("SELECT v FROM counted WHERE id = 1 FOR UPDATE");
      case 21 -> RandomJdbcTest::preparedWrite;
      case 22 -> this::batch;
      case 23 -> this::xa;
      case 24 -> this::xaInTwoPhases;
      case 25 -> RandomJdbcTest::limited;
      case 26 -> statement("CALL counting()");
      case 27 -> cancelled(COUNT + " AND SLEEP(0.02) = 0");
      default -> statement(COUNT);
    };
  }

  private static Step statement(String text) {
    return connection -> execute(connection, text);
  }

  private static void execute(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(text);
    }
  }

  private static long value(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT v FROM counted WHERE id = 1")) {
      return rows.next() ? rows.getLong(1) : -1;
    }
  }

  /** The driver's own ping, as a pool sends it to a connection that rested. */
  private static void ping(Connection connection) throws SQLException {
    Connection own =
        connection.isWrapperFor(org.mariadb.jdbc.Connection.class)
            ? connection.unwrap(org.mariadb.jdbc.Connection.class)
            : connection.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
    own.isValid(1);
  }

  private static void drain(ResultSet rows) throws SQLException {
    try (rows) {
      while (rows.next()) {
        rows.getObject(1);
      }
    }
  }

  private static void call(Connection connection) throws SQLException {
    try (CallableStatement statement = connection.prepareCall("{call reading()}")) {
      statement.getWarnings();
    }
  }

  private static void describe(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM counted")) {
      statement.getMetaData();
    }
  }

  private void stream(Connection connection) throws SQLException {
    boolean isMariaDb = connection.isWrapperFor(org.mariadb.jdbc.Connection.class);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(isMariaDb ? 1 : Integer.MIN_VALUE);
      try (ResultSet rows = statement.executeQuery("SELECT * FROM others")) {
        while (random.nextInt(4) > 0 && rows.next()) {
          rows.getInt(1);
        }
      }
    }
  }

  private static void prepared(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("SELECT v FROM counted WHERE id = ?")) {
      statement.setInt(1, 1);
      drain(statement.executeQuery());
    }
  }

  private static void preparedWrite(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("UPDATE counted SET v = v + ? WHERE id = 1")) {
      statement.setInt(1, 1);
      statement.executeUpdate();
    }
  }

  private void batch(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.addBatch(COUNT);
      statement.addBatch(COUNT);
      if (random.nextBoolean()) {
        statement.addBatch("INSERT INTO others VALUES (1)");
      }
      statement.executeBatch();
    }
  }

  private void xa(Connection connection) throws SQLException {
    String id = "'x" + random.nextInt(Integer.MAX_VALUE) + "'";
    execute(connection, "XA START " + id);
    execute(connection, COUNT);
    execute(connection, "XA END " + id);
    execute(
        connection, random.nextBoolean() ? "XA COMMIT " + id + " ONE PHASE" : "XA ROLLBACK " + id);
  }

  private void xaInTwoPhases(Connection connection) throws SQLException {
    String id = "'y" + random.nextInt(Integer.MAX_VALUE) + "'";
    execute(connection, "XA START " + id);
    execute(connection, COUNT);
    execute(connection, "XA END " + id);
    execute(connection, "XA PREPARE " + id);
    execute(connection, (random.nextBoolean() ? "XA COMMIT " : "XA ROLLBACK ") + id);
  }

  private static void limited(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(5);
      statement.execute(COUNT);
    }
  }

  /** A statement that another thread cancels while it runs, or before, or when it is over. */
  private static Step cancelled(String text) {
    return connection -> {
      try (Statement statement = connection.createStatement()) {
        Thread other = new Thread(() -> cancel(statement));
        other.start();
        try {
          statement.execute(text);
        } finally {
          join(other);
        }
      }
    };
  }

  private static void cancel(Statement statement) {
    try {
      statement.cancel();
    } catch (SQLException over) {
      // There is nothing to cancel any more.
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
