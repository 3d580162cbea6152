package io.antipode.mysql;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A driver's own connection under pools and proxies, and what that driver tells beside JDBC. */
interface Wire {
  /** Returns the driver's own connection, or what is known to be nearest to it. */
  Connection connection();

  /** Returns whether the server said last that each statement commits by itself. */
  boolean isAutocommit() throws SQLException;

  /** Returns whether the server said last that a transaction is open. */
  boolean isInTransaction() throws SQLException;

  /**
   * Hands on the GTIDs of commits as they come, in the thread that commits.
   *
   * @return what the caller keeps as long as it listens; null where this connection tells none
   */
  default @Nullable Object listen(Consumer<String> gtids) {
    return null;
  }

  /** Returns whether results of a statement are read while the application walks through them. */
  default boolean isStreaming(Statement statement) throws SQLException {
    return false;
  }

  /** Returns the wire of a connection. */
  static Wire of(Connection connection) throws SQLException {
    Wire found = null;
    try {
      found = ConnectorJ.wire(connection);
    } catch (NoClassDefFoundError absent) {
      // Another driver's.
    }
    try {
      found = found == null ? MariaDbConnector.wire(connection) : found;
    } catch (NoClassDefFoundError absent) {
      // Another driver's.
    }
    return found == null ? new Unknown(connection) : found;
  }

  /** A connection of a driver that tells nothing: a transaction may be open. */
  record Unknown(Connection connection) implements Wire {
    @Override
    public boolean isAutocommit() throws SQLException {
      return connection.getAutoCommit();
    }

    @Override
    public boolean isInTransaction() throws SQLException {
      return !connection.getAutoCommit();
    }
  }
}
