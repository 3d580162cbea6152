package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.mysql.cj.jdbc.JdbcConnection;
import java.io.IOException;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** One connection of an instrumented pool, on which calls of JDBC are made one by one. */
final class Jdbc {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final DataSource pool;
  private @Nullable Connection connection;
  private @Nullable Statement streaming;

  Jdbc(DataSource pool) {
    this.pool = pool;
  }

  /**
   * Makes one call; returns what it came to.
   *
   * @param parameters of a prepared statement
   */
  synchronized JsonNode call(String call, String sql, List<String> parameters) throws SQLException {
    Connection open = open();
    switch (call) {
      case "begin" -> open.setAutoCommit(false);
      case "commit" -> open.commit();
      case "rollback" -> open.rollback();
      case "autocommit" -> open.setAutoCommit(true);
      case "read_committed" -> open.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
      case "close" -> close();
      case "stream" -> stream(open, sql);
      case "read_on" -> readOn(Objects.requireNonNull(streaming));
      case "prepared" -> {
        return prepared(open, sql, parameters);
      }
      case "prepared_update" -> {
        try (PreparedStatement statement = open.prepareStatement(sql)) {
          return IntNode.valueOf(statement.executeUpdate());
        }
      }
      case "generated" -> {
        return generated(open, sql);
      }
      case "prepared_columns" -> preparedColumns(open, sql);
      case "call" -> {
        try (CallableStatement statement = open.prepareCall(sql)) {
          return rows(statement.executeQuery());
        }
      }
      case "tables" -> tables(open);
      case "ping" -> ping(open);
      case "copy" -> copy(open, sql);
      default -> {
        return statement(open, call, sql);
      }
    }
    return NullNode.instance;
  }

  /** Writes, and reads what the driver returns of the rows. */
  private static JsonNode generated(Connection open, String sql) throws SQLException {
    try (Statement statement = open.createStatement()) {
      int ignored = statement.executeUpdate(sql, Statement.RETURN_GENERATED_KEYS);
      return rows(statement.getGeneratedKeys());
    }
  }

  /** Lets the driver say what a query would show. */
  private static void preparedColumns(Connection open, String sql) throws SQLException {
    try (PreparedStatement statement = open.prepareStatement(sql)) {
      ResultSetMetaData ignored = statement.getMetaData();
    }
  }

  /** Lets the driver list the tables. */
  private static void tables(Connection open) throws SQLException {
    try (ResultSet found = open.getMetaData().getTables(open.getCatalog(), null, "%", null)) {
      JsonNode ignored = rows(found);
    }
  }

  /** Asks whether the driver's own connection lives, as a pool does where nobody sees it. */
  private static void ping(Connection open) throws SQLException {
    boolean isMariaDb = open.isWrapperFor(org.mariadb.jdbc.Connection.class);
    Connection own =
        isMariaDb
            ? open.unwrap(org.mariadb.jdbc.Connection.class)
            : open.unwrap(JdbcConnection.class);
    boolean ignored = own.isValid(1);
  }

  /** Copies a row of one column in, on the driver's own connection, as users of pgjdbc do. */
  private static void copy(Connection open, String sql) throws SQLException {
    CopyManager manager = open.unwrap(PGConnection.class).getCopyAPI();
    try {
      long ignored = manager.copyIn(sql, new StringReader("a\n"));
    } catch (IOException impossible) { // Of the reader.
      throw new UncheckedIOException(impossible);
    }
  }

  private Connection open() throws SQLException {
    if (connection == null) {
      connection = pool.getConnection();
    }
    return connection;
  }

  private JsonNode statement(Connection open, String call, String sql) throws SQLException {
    try (Statement statement =
        open.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
      return switch (call) {
        case "update" -> IntNode.valueOf(statement.executeUpdate(sql));
        case "query" -> rows(statement.executeQuery(sql));
        case "columns" -> columns(statement.executeQuery(sql));
        case "execute" -> all(statement, statement.execute(sql));
        case "batch" -> batch(statement, sql);
        case "insert_row" -> insertRow(open, sql);
        default -> throw AgentException.senseless("no call " + call);
      };
    }
  }

  private static JsonNode prepared(Connection open, String sql, List<String> parameters)
      throws SQLException {
    try (PreparedStatement statement = open.prepareStatement(sql)) {
      for (int nth = 0; nth < parameters.size(); nth++) {
        statement.setString(nth + 1, parameters.get(nth));
      }
      return rows(statement.executeQuery());
    }
  }

  private static JsonNode columns(ResultSet found) throws SQLException {
    ArrayNode labels = JSON.arrayNode();
    ResultSetMetaData columns = found.getMetaData();
    for (int nth = 1; nth <= columns.getColumnCount(); nth++) {
      labels.add(columns.getColumnLabel(nth));
    }
    return labels;
  }

  private static JsonNode rows(ResultSet found) throws SQLException {
    ArrayNode rows = JSON.arrayNode();
    while (found.next()) {
      rows.add(found.getString(1));
    }
    return rows;
  }

  private static JsonNode all(Statement statement, boolean hasRows) throws SQLException {
    ArrayNode results = JSON.arrayNode();
    boolean isRows = hasRows;
    while (isRows || statement.getUpdateCount() != -1) {
      results.add(
          isRows ? rows(statement.getResultSet()) : IntNode.valueOf(statement.getUpdateCount()));
      isRows = statement.getMoreResults();
    }
    return results;
  }

  private static JsonNode batch(Statement statement, String sql) throws SQLException {
    for (String each : sql.split(";", -1)) {
      statement.addBatch(each);
    }
    ArrayNode counts = JSON.arrayNode();
    for (int count : statement.executeBatch()) {
      counts.add(count);
    }
    return counts;
  }

  /** Inserts a row of one column by a result that can be written through. */
  private static JsonNode insertRow(Connection open, String sql) throws SQLException {
    try (Statement statement =
            open.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet rows = statement.executeQuery(sql)) {
      rows.moveToInsertRow();
      rows.updateString(1, "inserted");
      rows.insertRow();
    }
    return NullNode.instance;
  }

  /** Leaves the reply where the application has seen its first result alone. */
  private void stream(Connection open, String sql) throws SQLException {
    streaming = open.createStatement();
    boolean isConnectorJ = open.isWrapperFor(JdbcConnection.class);
    streaming.setFetchSize(isConnectorJ ? Integer.MIN_VALUE : 1);
    boolean ignored = streaming.execute(sql);
  }

  private static void readOn(Statement statement) throws SQLException {
    try (statement) {
      JsonNode ignored = all(statement, true);
    }
  }

  synchronized void close() throws SQLException {
    if (connection != null) {
      connection.close();
      connection = null;
    }
  }
}
