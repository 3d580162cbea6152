package io.antipode.postgresql;

import io.antipode.jdbc.BorrowedConnection;
import io.antipode.jdbc.OwnConnection;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.core.BaseConnection;
import org.postgresql.jdbc.AutoSave;

/** A connection on which the library asks: its own, or the application's between two statements. */
final class Link extends OwnConnection {
  /** How a session stands, as the packet that ends each reply says. */
  enum State {
    IDLE,
    OPEN,
    /** In a transaction that failed and can only be rolled back. */
    FAILED,
    LOST
  }

  private final BaseConnection driver;

  private Link(BaseConnection driver) {
    super(driver);
    this.driver = driver;
  }

  /**
   * Returns the link of a connection of the application's, which is not closed.
   *
   * @throws SQLException if it is none of pgjdbc's
   */
  static Link on(Connection connection) throws SQLException {
    PGConnection found = BorrowedConnection.unwrapped(connection, PGConnection.class);
    if (found instanceof BaseConnection driver) {
      return new Link(driver);
    }
    throw new SQLException(
        "a connection of " + found.getClass().getName() + " is none of pgjdbc's");
  }

  /**
   * Connects within a time, after as much of which each statement is given up.
   *
   * @throws SQLException as the driver does
   */
  static Link connect(Address address, Duration timeout) throws SQLException {
    Properties properties = new Properties();
    if (address.user() != null) {
      properties.setProperty("user", address.user());
    }
    if (address.password() != null) {
      properties.setProperty("password", address.password());
    }
    long millis = Math.max(timeout.toMillis(), 1);
    String seconds = Long.toString((millis + 999) / 1000);
    properties.setProperty("ApplicationName", "antipode");
    properties.setProperty("connectTimeout", seconds);
    properties.setProperty("socketTimeout", seconds);
    properties.setProperty("loginTimeout", Double.toString(millis / 1000.0));
    Link link = on(DriverManager.getConnection(address.url(), properties));
    try {
      link.setTimeout(timeout);
      return link;
    } catch (SQLException error) {
      link.close();
      throw error;
    }
  }

  /** Returns the driver's connection. */
  Connection driver() {
    return driver;
  }

  State state() {
    try {
      if (driver.isClosed()) {
        return State.LOST;
      }
    } catch (SQLException error) {
      return State.LOST;
    }
    return switch (driver.getTransactionState()) {
      case IDLE -> State.IDLE;
      case OPEN -> State.OPEN;
      case FAILED -> State.FAILED;
    };
  }

  /** Returns whether the next statement outside of a transaction begins one. */
  boolean opens() {
    try {
      return !driver.getAutoCommit();
    } catch (SQLException closed) {
      return false;
    }
  }

  /** Returns the number of the connection's process, as the handshake had it. */
  String backend() {
    return Integer.toString(driver.getBackendPID());
  }

  /** Returns its process, and its own address; null where nobody knows that. */
  @Nullable Backend process() {
    return Backend.of(driver.getQueryExecutor());
  }

  /** Returns whether the server says that it takes no writes. */
  boolean isStandby() {
    return "on".equals(driver.getParameterStatus("in_hot_standby"));
  }

  /** Returns the rows of a question, which begins no transaction; NULL is the empty text. */
  List<Map<String, String>> ask(String sql) throws SQLException {
    try (ResultSet found = driver.execSQLQuery(sql);
        Statement ignored = found.getStatement()) {
      return all(found);
    }
  }

  /**
   * Returns the rows of a question, unless something else keeps the connection busy for so long: a
   * COPY that the application has not ended does for ever, where it began that out of our sight.
   */
  List<Map<String, String>> ask(String sql, Duration most) throws SQLException {
    FutureTask<List<Map<String, String>>> task = new FutureTask<>(() -> ask(sql));
    Thread asking = new Thread(task, "antipode-postgresql");
    asking.setDaemon(true);
    asking.start();
    try {
      return task.get(most.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException busy) {
      throw new SQLException("the connection is busy", busy);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new SQLException("interrupted while the connection was asked", error);
    } catch (ExecutionException error) {
      throw error.getCause() instanceof SQLException own ? own : new SQLException(error.getCause());
    }
  }

  /** Sends a command, which begins no transaction. */
  void send(String sql) throws SQLException {
    driver.execSQLUpdate(sql);
  }

  /** Returns a text as a literal, whatever backslashes mean to the session. */
  String literal(String text) throws SQLException {
    return "'" + driver.escapeString(text) + "'";
  }

  private static List<Map<String, String>> all(ResultSet found) throws SQLException {
    List<Map<String, String>> rows = new ArrayList<>();
    while (found.next()) {
      rows.add(byName(found));
    }
    return rows;
  }

  /** Returns whether {@link #commit} may be called: nothing is sent around each statement. */
  boolean commitsTogether() {
    return driver.getAutosave() == AutoSave.NEVER;
  }

  /**
   * Commits the open transaction, with a question before and after it in the same packet.
   *
   * @return both answers
   */
  List<Map<String, String>> commit(String before, String after) throws SQLException {
    try (Statement statement = driver.createStatement()) {
      statement.setFetchSize(0);
      List<Map<String, String>> rows = new ArrayList<>();
      boolean isRows = statement.execute(before + "; COMMIT; " + after);
      while (isRows || statement.getUpdateCount() != -1) {
        if (isRows) {
          try (ResultSet found = statement.getResultSet()) {
            rows.addAll(all(found));
          }
        }
        isRows = statement.getMoreResults();
      }
      return rows;
    }
  }
}
