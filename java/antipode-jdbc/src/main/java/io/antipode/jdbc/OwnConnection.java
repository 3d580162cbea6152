package io.antipode.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A connection on which the library itself asks, used by one thread at a time: its own, or the
 * application's between two of its statements.
 */
public class OwnConnection implements AutoCloseable {
  private static final Logger LOG = Logger.getLogger("antipode");

  /** A connection that was idle for longer is asked whether it lives. */
  private static final long IDLE_NS = 500_000_000;

  private final Connection connection;
  private long usedNs = System.nanoTime();

  /** Asks on a connection of a driver. */
  public OwnConnection(Connection connection) {
    this.connection = connection;
  }

  /** Returns the driver's connection. */
  protected final Connection connection() {
    return connection;
  }

  /** Gives each further statement up that is not answered within a time. */
  public final void setTimeout(Duration timeout) throws SQLException {
    long most = Math.min(Math.max(timeout.toMillis(), 1), Integer.MAX_VALUE);
    connection.setNetworkTimeout(Runnable::run, (int) most);
  }

  /** Returns whether it is closed; the driver closes one that it lost. */
  final boolean isClosed() {
    try {
      return connection.isClosed();
    } catch (SQLException error) {
      return true;
    }
  }

  /** Returns whether it may be used; asks the server where it was idle for a while. */
  public final boolean isAlive(Duration timeout) {
    try {
      if (isClosed()) {
        return false;
      }
      int seconds = (int) Math.min(Math.max(timeout.toSeconds(), 1), 60);
      return System.nanoTime() - usedNs < IDLE_NS || connection.isValid(seconds);
    } catch (SQLException error) {
      return false;
    }
  }

  /** Nobody uses it now. */
  public final void release() {
    usedNs = System.nanoTime();
  }

  /** Sends a statement whose result nobody reads. */
  public final void execute(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      boolean ignored = statement.execute(sql);
    } catch (RuntimeException error) {
      throw broken(error);
    }
  }

  /**
   * What a driver throws that loses its place in what the server sends, as Connector/J does after a
   * cancel that came late: the connection is of no use, and the application is not harmed by ours.
   */
  private static SQLException broken(RuntimeException error) {
    return new SQLNonTransientConnectionException("the driver failed: " + error, "08S01", error);
  }

  /** Returns how many rows a statement changed, as the server says. */
  public final int update(String sql, Object... parameters) throws SQLException {
    try (PreparedStatement statement = prepared(sql, parameters)) {
      return statement.executeUpdate();
    } catch (RuntimeException error) {
      throw broken(error);
    }
  }

  private PreparedStatement prepared(String sql, Object... parameters) throws SQLException {
    PreparedStatement statement = connection.prepareStatement(sql);
    for (int nth = 0; nth < parameters.length; nth++) {
      if (parameters[nth] instanceof byte[] bytes) {
        statement.setBytes(nth + 1, bytes);
      } else {
        statement.setObject(nth + 1, parameters[nth]);
      }
    }
    return statement;
  }

  /**
   * Makes something of a row.
   *
   * @param <T> what it makes
   */
  public interface Row<T> {
    /** Returns what it makes. */
    T of(ResultSet row) throws SQLException;
  }

  /** Returns what is made of the rows of a query. */
  public final <T> List<T> query(String sql, Row<T> make, Object... parameters)
      throws SQLException {
    try (PreparedStatement statement = prepared(sql, parameters);
        ResultSet found = statement.executeQuery()) {
      List<T> rows = new ArrayList<>();
      while (found.next()) {
        rows.add(make.of(found));
      }
      return rows;
    } catch (RuntimeException error) {
      throw broken(error);
    }
  }

  /** Returns rows by the names of their columns; NULL is the empty text. */
  public final List<Map<String, String>> rows(String sql) throws SQLException {
    return query(sql, OwnConnection::byName);
  }

  /** Returns one row by the names of its columns; NULL is the empty text. */
  public static Map<String, String> byName(ResultSet row) throws SQLException {
    ResultSetMetaData columns = row.getMetaData();
    Map<String, String> named = new LinkedHashMap<>();
    for (int nth = 1; nth <= columns.getColumnCount(); nth++) {
      String value = row.getString(nth);
      named.put(columns.getColumnLabel(nth), value == null ? "" : value);
    }
    return named;
  }

  /** Makes what another thread waits for on it fail. */
  public final void interrupt() {
    try {
      connection.abort(Runnable::run);
    } catch (SQLException error) {
      LOG.log(Level.FINE, error, () -> "ending a connection failed");
    }
  }

  @Override
  public final void close() {
    try {
      connection.close();
    } catch (SQLException error) {
      LOG.log(Level.FINE, error, () -> "closing a connection failed");
    }
  }
}
