package io.antipode.mysql;

import io.antipode.mysql.Transaction.Word;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A driver's own connection under pools and proxies, and what that driver reports in addition to
 * JDBC.
 */
interface Wire {
  /** Returns the driver's own connection, or what is known to be nearest to it. */
  Connection connection();

  /**
   * Returns what the driver's status word says after a call that succeeded, in so far as it can be
   * believed: drivers clear it for calls whose replies they do not read, and keep bits of earlier
   * replies.
   */
  Word word();

  /**
   * Returns what the driver's status word says after a statement of the library's own, sent as text
   * and answered without rows: that word is whole.
   */
  Word wholeWord() throws SQLException;

  /** Returns whether the last reply, read to its end, has warnings. */
  default boolean hasWarnings() {
    return false;
  }

  /**
   * Returns whether the last reply, to an empty statement, reports a change of the session, such as
   * a commit of which no reply reported before; true where the driver does not say.
   */
  default boolean hasChanged() {
    return true;
  }

  /**
   * Returns the number of the connection in its handshake; empty where the driver does not report
   * it.
   */
  default OptionalLong accepted() throws SQLException {
    return OptionalLong.empty();
  }

  /**
   * Hands on the GTIDs of commits as they come, in the thread that commits.
   *
   * @return what the caller keeps as long as it listens; null where this connection reports none
   */
  default @Nullable Object listen(Consumer<String> gtids) {
    return null;
  }

  /** Returns whether results of a statement are read while the application walks through them. */
  default boolean isStreaming(Statement statement) {
    try {
      return isStreaming(statement.getFetchSize());
    } catch (SQLException error) {
      return false;
    }
  }

  /** Returns the same of one that has this fetch size. */
  default boolean isStreaming(int fetchSize) {
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

  /** A connection of a driver that reports nothing but what JDBC asks for. */
  record Unknown(Connection connection) implements Wire {
    @Override
    public Word word() {
      try {
        return new Word(connection.getAutoCommit() ? Known.YES : Known.UNKNOWN, Known.UNKNOWN);
      } catch (SQLException error) {
        return Word.SILENT;
      }
    }

    @Override
    public Word wholeWord() {
      return Word.SILENT;
    }
  }
}
