package io.antipode.programs;

import io.antipode.programs.Steps.Named;
import java.io.StringReader;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.copy.CopyIn;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/**
 * What programs do with PostgreSQL. Where a superuser has made the schema {@code away} they also
 * write through foreign tables and dblink.
 */
final class PostgreSqlSteps implements Steps {
  private static final String COUNT = "UPDATE counted SET v = v + 1 WHERE id = 1";
  private static final String NOTE = "INSERT INTO noted (body) VALUES ('a')";

  private static final String TABLES =
      """
      CREATE TABLE noted (id bigserial PRIMARY KEY, body text)
      CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)
      CREATE FUNCTION counting() RETURNS int LANGUAGE plpgsql AS $$ BEGIN %s; RETURN 1; END $$
      CREATE FUNCTION log(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN %s; RETURN $1; END $$
      CREATE FUNCTION reading() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM noted'
      CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'rc'; \
      BEGIN OPEN c FOR SELECT body FROM noted; RETURN c; END $$
      CREATE PROCEDURE adding() LANGUAGE plpgsql AS $$ BEGIN %s; END $$
      CREATE PROCEDURE committing() LANGUAGE plpgsql AS $$ BEGIN SET LOCAL synchronous_commit = off; \
      %s; COMMIT; END $$
      CREATE PROCEDURE failing() LANGUAGE plpgsql AS $$ BEGIN %s; COMMIT; RAISE 'after'; END $$
      CREATE VIEW hiding AS SELECT counting() AS one
      CREATE TABLE counted (id int PRIMARY KEY, v bigint)
      CREATE FUNCTION bump(counted) RETURNS int LANGUAGE sql AS 'SELECT counting()'
      INSERT INTO counted VALUES (1, 0)
      """;

  private final Random random;
  private final List<Named> elsewhere = new ArrayList<>();
  private int names;

  PostgreSqlSteps(Random random) {
    this.random = random;
  }

  @Override
  public void make(Connection primary) throws SQLException {
    for (String statement : TABLES.strip().replace("%s", COUNT).split("\n", -1)) {
      Steps.execute(primary, statement);
    }
    try (Statement statement = primary.createStatement();
        ResultSet found = statement.executeQuery("SELECT to_regnamespace('away') IS NOT NULL")) {
      if (found.next() && found.getBoolean(1)) {
        elsewhere.add(
            Named.of("INSERT INTO away.noted (id, body) SELECT -(random() * 1e15)::bigint, 'f'"));
        elsewhere.add(Named.of("SELECT away.noting()"));
        elsewhere.add(Named.of("SELECT away.noting(), pg_terminate_backend(pg_backend_pid())"));
        elsewhere.add(Named.of("SELECT count(*) FROM away.noted"));
      }
    }
  }

  @Override
  public String value() {
    return "SELECT v + (SELECT count(*) FROM noted) + (SELECT count(*) FROM"
        + " pg_largeobject_metadata) FROM counted WHERE id = 1";
  }

  @Override
  public List<Named> reading() {
    return List.of(
        Named.of("autocommit off", connection -> connection.setAutoCommit(false)),
        Named.of("autocommit on", connection -> connection.setAutoCommit(true)),
        Named.of("commit", Connection::commit),
        Named.of("rollback", Connection::rollback),
        Named.of("BEGIN"),
        Named.of("BEGIN ISOLATION LEVEL REPEATABLE READ"),
        Named.of("COMMIT"),
        Named.of("ROLLBACK"),
        Named.of("COMMIT AND CHAIN"),
        Named.of("SELECT * FROM no_such"),
        Named.of("INSERT INTO counted VALUES (1, 1)"),
        Named.of("valid", connection -> connection.isValid(1)),
        Named.of("tables", PostgreSqlSteps::tables),
        Named.of("describe", PostgreSqlSteps::describe),
        Named.of("stream", this::stream),
        Named.of("prepared", PostgreSqlSteps::prepared),
        Named.of("savepoint", this::savepoint),
        Named.of("isolation", this::isolation),
        Named.of(value()),
        Named.of("SELECT reading(), lower('A')"),
        Named.of("SELECT v FROM counted WHERE id = 1 FOR UPDATE"),
        Named.of("SET LOCAL synchronous_commit = off"),
        Named.of("cancelled", Steps.cancelled("SELECT pg_sleep(5)")),
        Named.of("refcursor", PostgreSqlSteps::refcursor),
        Named.of("held cursor", this::heldCursor));
  }

  @Override
  public List<Named> writing() {
    List<Named> all = new ArrayList<>(elsewhere);
    all.addAll(statements());
    all.addAll(texts());
    all.addAll(unseen());
    return all;
  }

  /** Statements that write, or call what does. */
  private List<Named> statements() {
    return List.of(
        Named.of(COUNT),
        Named.of(NOTE + " RETURNING id"),
        Named.of("UPDATE counted SET v = v + 1 WHERE id = 0"),
        Named.of("INSERT INTO late VALUES (1), (1)"),
        Named.of("SELECT counting()"),
        Named.of("SELECT log('x')"),
        Named.of("SELECT c.bump FROM counted c"),
        Named.of("SELECT * FROM hiding"),
        Named.of("WITH x AS (" + NOTE + " RETURNING id) SELECT id FROM x"),
        Named.of("EXPLAIN ANALYZE " + COUNT),
        Named.of("DO $$ BEGIN PERFORM counting(); END $$"),
        Named.of("CALL adding()"),
        Named.of("CALL committing()"),
        Named.of("CALL failing()"),
        Named.of("prepared write", PostgreSqlSteps::preparedWrite),
        Named.of("keys", PostgreSqlSteps::keys),
        Named.of("batch", this::batch),
        Named.of("escape", PostgreSqlSteps::escape),
        Named.of("a row", PostgreSqlSteps::row),
        Named.of("EXECUTE", this::prepareAndExecute),
        Named.of("two phases", this::twoPhases),
        Named.of("cancelled write", Steps.cancelled("SELECT counting(), pg_sleep(0.02)")),
        Named.of(
            "driver's error",
            connection -> connection.createStatement().executeUpdate("SELECT counting()")));
  }

  /** Several statements in one text. */
  private static List<Named> texts() {
    return List.of(
        Named.of(COUNT + "; SELECT 1; " + NOTE),
        Named.of("BEGIN; " + COUNT + "; COMMIT; SELECT 1"),
        Named.of(COUNT + "; COMMIT; BEGIN"),
        Named.of("ROLLBACK; " + COUNT),
        Named.of("COMMIT; " + COUNT + "; COMMIT; BEGIN; SELECT 1"),
        Named.of("BEGIN; " + COUNT),
        Named.of(COUNT + "; INSERT INTO counted VALUES (1, 1)"),
        Named.of("BEGIN; " + COUNT + "; COMMIT; SELECT 1 / 0"),
        Named.of("SELECT log('x'); COMMIT; BEGIN"));
  }

  /** By objects of the driver's own. */
  private List<Named> unseen() {
    return List.of(
        Named.of("a result's statement", connection -> ofResult(connection, false)),
        Named.of("a result's connection", connection -> ofResult(connection, true)),
        Named.of("a driver's statement", PostgreSqlSteps::driversStatement),
        Named.of("a driver's result", PostgreSqlSteps::driversResult),
        Named.of("COPY", PostgreSqlSteps::copy),
        Named.of("COPY by pieces", this::copyByPieces),
        Named.of("large object", PostgreSqlSteps::largeObject));
  }

  private static void tables(Connection connection) throws SQLException {
    Steps.drain(connection.getMetaData().getTables(null, null, "c%", null));
  }

  private static void describe(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM counted")) {
      ResultSetMetaData unused = statement.getMetaData();
    }
  }

  private void stream(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(1);
      try (ResultSet rows = statement.executeQuery("SELECT body FROM noted")) {
        while (random.nextInt(4) > 0 && rows.next()) {
          Object unused = rows.getString(1);
        }
      }
    }
  }

  private static void prepared(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("SELECT v FROM counted WHERE id = ?")) {
      for (int nth = 0; nth < 3; nth++) {
        statement.setInt(1, 1);
        Steps.drain(statement.executeQuery());
      }
    }
  }

  private void savepoint(Connection connection) throws SQLException {
    Savepoint savepoint = connection.setSavepoint();
    try {
      Steps.execute(connection, random.nextBoolean() ? "SELECT 1 / 0" : "SELECT 1");
      connection.releaseSavepoint(savepoint);
    } catch (SQLException caught) {
      connection.rollback(savepoint);
    }
  }

  private void isolation(Connection connection) throws SQLException {
    connection.setTransactionIsolation(
        random.nextBoolean()
            ? Connection.TRANSACTION_READ_COMMITTED
            : Connection.TRANSACTION_REPEATABLE_READ);
  }

  private static void refcursor(Connection connection) throws SQLException {
    Steps.execute(connection, "SELECT opened()");
    Steps.execute(connection, "FETCH ALL FROM rc");
  }

  private void heldCursor(Connection connection) throws SQLException {
    String name = "c" + ++names;
    Steps.execute(connection, "DECLARE " + name + " CURSOR WITH HOLD FOR SELECT body FROM noted");
    Steps.execute(connection, "FETCH ALL FROM " + name);
    Steps.execute(connection, "CLOSE " + name);
  }

  private static void preparedWrite(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement("UPDATE counted SET v = v + ? WHERE id = 1")) {
      for (int nth = 0; nth < 7; nth++) { // The driver prepares the sixth at its server.
        statement.setInt(1, 1);
        int unused = statement.executeUpdate();
      }
    }
  }

  private static void keys(Connection connection) throws SQLException {
    try (PreparedStatement statement =
        connection.prepareStatement(NOTE, Statement.RETURN_GENERATED_KEYS)) {
      int unused = statement.executeUpdate();
      Steps.drain(statement.getGeneratedKeys());
    }
  }

  private void batch(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.addBatch(COUNT);
      statement.addBatch(random.nextBoolean() ? NOTE : "INSERT INTO counted VALUES (1, 1)");
      int[] unused = statement.executeBatch();
    }
  }

  private static void escape(Connection connection) throws SQLException {
    try (CallableStatement statement = connection.prepareCall("{? = call counting()}")) {
      statement.registerOutParameter(1, java.sql.Types.INTEGER);
      boolean unused = statement.execute();
    }
  }

  private static void row(Connection connection) throws SQLException {
    try (Statement statement =
            connection.createStatement(
                ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet rows = statement.executeQuery("SELECT id, v FROM counted WHERE id = 1")) {
      if (rows.next()) {
        rows.updateLong("v", rows.getLong("v") + 1);
        rows.updateRow();
      }
    }
  }

  private void prepareAndExecute(Connection connection) throws SQLException {
    String name = "p" + ++names;
    Steps.execute(connection, "PREPARE " + name + " AS " + COUNT);
    String explained = random.nextBoolean() ? "EXPLAIN ANALYZE " : "";
    Steps.execute(connection, explained + "EXECUTE " + name);
  }

  private void twoPhases(Connection connection) throws SQLException {
    String name = "'x" + random.nextInt(Integer.MAX_VALUE) + "'";
    if (!connection.getAutoCommit()) {
      return; // The driver would begin a transaction before the second phase.
    }
    Steps.execute(connection, "ROLLBACK");
    Steps.execute(connection, "BEGIN");
    Steps.execute(connection, COUNT);
    Steps.execute(connection, "PREPARE TRANSACTION " + name);
    Steps.execute(connection, (random.nextBoolean() ? "COMMIT" : "ROLLBACK") + " PREPARED " + name);
  }

  private static void ofResult(Connection connection, boolean isConnection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT 1")) {
      Statement same = rows.getStatement();
      if (isConnection) {
        Steps.execute(same.getConnection(), COUNT);
      } else {
        int unused = same.executeUpdate(COUNT);
      }
    }
  }

  private static void driversStatement(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      int unused = ((Statement) statement.unwrap(PGStatement.class)).executeUpdate(COUNT);
    }
  }

  private static void driversResult(Connection connection) throws SQLException {
    ResultSet tables = connection.getMetaData().getTables(null, null, "c%", null);
    try (tables) {
      Statement driversOwn = tables.getStatement();
      if (driversOwn != null) { // c3p0 has none.
        Steps.execute(driversOwn.getConnection(), COUNT);
      }
    }
  }

  private static void copy(Connection connection) throws Exception {
    long unused =
        connection
            .unwrap(PGConnection.class)
            .getCopyAPI()
            .copyIn("COPY noted (body) FROM STDIN", new StringReader("b\nc\n"));
  }

  /** Row by row, and then ended or given up. */
  private void copyByPieces(Connection connection) throws SQLException {
    CopyIn copy =
        connection.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY noted (body) FROM STDIN");
    copy.writeToCopy(new byte[] {'d', '\n'}, 0, 2);
    if (random.nextBoolean()) {
      long unused = copy.endCopy();
    } else {
      copy.cancelCopy();
    }
  }

  private static void largeObject(Connection connection) throws SQLException {
    LargeObjectManager objects = connection.unwrap(PGConnection.class).getLargeObjectAPI();
    long id = objects.createLO();
    try (LargeObject object = objects.open(id, LargeObjectManager.WRITE)) {
      object.write(new byte[100]);
    }
  }
}
