package io.antipode.programs;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Random;

/** What programs may do with the connections of one store. */
interface Steps {
  /** One call or a few that belong together; what it throws is the application's. */
  @FunctionalInterface
  interface Step {
    void on(Connection connection) throws Exception;
  }

  /** A step with its name, for whoever reads what went wrong. */
  record Named(String name, Step step) {
    static Named of(String name, Step step) {
      return new Named(name, step);
    }

    /** A text that is sent as it is; it is its own name. */
    static Named of(String text) {
      return new Named(text, connection -> execute(connection, text));
    }
  }

  /** Makes tables and procedures, on the primary. */
  void make(Connection primary) throws SQLException;

  /** Returns the question for a number that each write raises and nothing lowers. */
  String value();

  /** Returns steps for a connection to the replica, too. */
  List<Named> reading();

  /** Returns steps that write, or may. */
  List<Named> writing();

  /** Returns steps that each have a random choice within. */
  static Step either(Random random, Step one, Step other) {
    return connection -> (random.nextBoolean() ? one : other).on(connection);
  }

  /** Sends a text, and reads all of its results. */
  static void execute(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      boolean isRows = statement.execute(text);
      while (isRows || statement.getUpdateCount() != -1) {
        isRows = statement.getMoreResults();
      }
    }
  }

  /** Reads all rows. */
  static void drain(ResultSet rows) throws SQLException {
    try (rows) {
      while (rows.next()) {
        Object unused = rows.getObject(1);
      }
    }
  }

  /** A statement that another thread cancels while it runs, or before, or when it is over. */
  static Step cancelled(String text) {
    return connection -> {
      try (Statement statement = connection.createStatement()) {
        Thread other = new Thread(() -> cancel(statement));
        other.start();
        try {
          boolean unused = statement.execute(text);
        } finally {
          other.join();
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
}
