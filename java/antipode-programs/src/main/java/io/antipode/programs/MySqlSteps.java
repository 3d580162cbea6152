package io.antipode.programs;

import io.antipode.programs.Steps.Named;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Random;

/** What programs do with MySQL and MariaDB. */
final class MySqlSteps implements Steps {
  private static final List<String> TABLES =
      List.of(
          "CREATE TABLE counted (id INT PRIMARY KEY, v BIGINT)",
          "CREATE TABLE noted (id BIGINT AUTO_INCREMENT PRIMARY KEY, body VARCHAR(9))",
          "CREATE TABLE others (id INT PRIMARY KEY)",
          "INSERT INTO others VALUES (1), (2), (3), (4), (5)",
          "CREATE PROCEDURE reading() READS SQL DATA SELECT v FROM counted",
          "CREATE PROCEDURE counting() UPDATE counted SET v = v + 1 WHERE id = 1",
          "INSERT INTO counted VALUES (1, 0)");

  private static final String COUNT = "UPDATE counted SET v = v + 1 WHERE id = 1";

  private final Random random;

  MySqlSteps(Random random) {
    this.random = random;
  }

  @Override
  public void make(Connection primary) throws SQLException {
    for (String statement : TABLES) {
      Steps.execute(primary, statement);
    }
  }

  @Override
  public String value() {
    return "SELECT v + (SELECT COUNT(*) FROM noted) FROM counted WHERE id = 1";
  }

  @Override
  public List<Named> reading() {
    return List.of(
        Named.of("autocommit off", connection -> connection.setAutoCommit(false)),
        Named.of("autocommit on", connection -> connection.setAutoCommit(true)),
        Named.of("commit", Connection::commit),
        Named.of("rollback", Connection::rollback),
        Named.of("BEGIN"),
        Named.of("COMMIT"),
        Named.of("ROLLBACK"),
        Named.of("SELECT * FROM no_such"),
        Named.of("INSERT INTO others VALUES (1)"),
        Named.of("ping", MySqlSteps::ping),
        Named.of("tables", MySqlSteps::tables),
        Named.of("call", MySqlSteps::call),
        Named.of("describe", MySqlSteps::describe),
        Named.of("stream", this::stream),
        Named.of("prepared", MySqlSteps::prepared),
        Named.of(value()),
        Named.of("HELP 'select'"),
        Named.of("SET autocommit = " + random.nextInt(2)),
        Named.of("SELECT SLEEP(0)"),
        Named.of("cancelled", Steps.cancelled("SELECT SLEEP(5)")),
        Named.of("SELECT v FROM counted WHERE id = 1 FOR UPDATE"));
  }

  @Override
  public List<Named> writing() {
    return List.of(
        Named.of(COUNT),
        Named.of("prepared write", MySqlSteps::preparedWrite),
        Named.of("batch", this::batch),
        Named.of("XA", this::xa),
        Named.of("XA in two phases", this::xaInTwoPhases),
        Named.of("limited", MySqlSteps::limited),
        Named.of("CALL counting()"),
        Named.of("cancelled write", Steps.cancelled(COUNT + " AND SLEEP(0.02) = 0")),
        Named.of("a result's statement", MySqlSteps::ofResult),
        Named.of("unwrapped", MySqlSteps::unwrapped));
  }

  /** The driver's own ping, as a pool sends it to a connection that rested. */
  private static void ping(Connection connection) throws SQLException {
    boolean unused = own(connection).isValid(1);
  }

  private static Connection own(Connection connection) throws SQLException {
    return connection.isWrapperFor(org.mariadb.jdbc.Connection.class)
        ? connection.unwrap(org.mariadb.jdbc.Connection.class)
        : connection.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
  }

  private static void unwrapped(Connection connection) throws SQLException {
    Steps.execute(own(connection), COUNT);
  }

  private static void ofResult(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT id FROM others")) {
      Steps.execute(rows.getStatement().getConnection(), COUNT);
    }
  }

  private static void tables(Connection connection) throws SQLException {
    Steps.drain(connection.getMetaData().getTables("app", null, "c%", null));
  }

  private static void call(Connection connection) throws SQLException {
    try (CallableStatement statement = connection.prepareCall("{call reading()}")) {
      Object unused = statement.getWarnings();
    }
  }

  private static void describe(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM counted")) {
      ResultSetMetaData unused = statement.getMetaData();
    }
  }

  private void stream(Connection connection) throws SQLException {
    boolean isMariaDb = connection.isWrapperFor(org.mariadb.jdbc.Connection.class);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(isMariaDb ? 1 : Integer.MIN_VALUE);
      try (ResultSet rows = statement.executeQuery("SELECT * FROM others")) {
        while (random.nextInt(4) > 0 && rows.next()) {
          int unused = rows.getInt(1);
        }
      }
    }
  }

  private static void prepared(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("SELECT v FROM counted WHERE id = ?")) {
      statement.setInt(1, 1);
      Steps.drain(statement.executeQuery());
    }
  }

  private static void preparedWrite(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("UPDATE counted SET v = v + ? WHERE id = 1")) {
      statement.setInt(1, 1);
      int unused = statement.executeUpdate();
    }
  }

  private void batch(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.addBatch(COUNT);
      statement.addBatch(COUNT);
      if (random.nextBoolean()) {
        statement.addBatch("INSERT INTO others VALUES (1)");
      }
      int[] unused = statement.executeBatch();
    }
  }

  private void xa(Connection connection) throws SQLException {
    String id = "'x" + random.nextInt(Integer.MAX_VALUE) + "'";
    Steps.execute(connection, "XA START " + id);
    Steps.execute(connection, COUNT);
    Steps.execute(connection, "XA END " + id);
    boolean commits = random.nextBoolean();
    Steps.execute(connection, commits ? "XA COMMIT " + id + " ONE PHASE" : "XA ROLLBACK " + id);
  }

  private void xaInTwoPhases(Connection connection) throws SQLException {
    String id = "'y" + random.nextInt(Integer.MAX_VALUE) + "'";
    Steps.execute(connection, "XA START " + id);
    Steps.execute(connection, COUNT);
    Steps.execute(connection, "XA END " + id);
    Steps.execute(connection, "XA PREPARE " + id);
    Steps.execute(connection, (random.nextBoolean() ? "XA COMMIT " : "XA ROLLBACK ") + id);
  }

  private static void limited(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(5);
      boolean unused = statement.execute(COUNT);
    }
  }
}
