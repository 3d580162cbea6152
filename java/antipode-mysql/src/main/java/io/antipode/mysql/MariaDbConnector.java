package io.antipode.mysql;

import io.antipode.jdbc.BorrowedConnection;
import io.antipode.mysql.Transaction.Word;
import java.sql.SQLException;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.mariadb.jdbc.Connection;
import org.mariadb.jdbc.util.constants.ServerStatus;

/** A connection of MariaDB's driver, which keeps the positions of commits to itself. */
record MariaDbConnector(Connection connection) implements Wire {
  static @Nullable Wire wire(java.sql.Connection connection) throws SQLException {
    return connection.isWrapperFor(Connection.class)
        ? new MariaDbConnector(BorrowedConnection.unwrapped(connection, Connection.class))
        : null;
  }

  /** The driver says that a transaction is open after each error, until the next reply. */
  @Override
  public Word word() {
    int status = connection.getContext().getServerStatus();
    return new Word(
        Known.of((status & ServerStatus.AUTOCOMMIT) != 0),
        Known.of((status & ServerStatus.IN_TRANSACTION) != 0));
  }

  @Override
  public Word wholeWord() {
    return word();
  }

  @Override
  public boolean hasWarnings() {
    return connection.getContext().getWarning() > 0;
  }

  @Override
  public OptionalLong accepted() {
    return OptionalLong.of(connection.getThreadId());
  }

  @Override
  public boolean isStreaming(int fetchSize) {
    return fetchSize != 0;
  }
}
