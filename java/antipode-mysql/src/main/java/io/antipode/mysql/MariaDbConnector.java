package io.antipode.mysql;

import java.sql.SQLException;
import java.sql.Statement;
import org.jspecify.annotations.Nullable;
import org.mariadb.jdbc.Connection;
import org.mariadb.jdbc.util.constants.ServerStatus;

/** A connection of MariaDB's driver, which keeps the positions of commits to itself. */
record MariaDbConnector(Connection connection) implements Wire {
  static @Nullable Wire wire(java.sql.Connection connection) throws SQLException {
    return connection.isWrapperFor(Connection.class)
        ? new MariaDbConnector(connection.unwrap(Connection.class))
        : null;
  }

  @Override
  public boolean isAutocommit() {
    return (connection.getContext().getServerStatus() & ServerStatus.AUTOCOMMIT) != 0;
  }

  @Override
  public boolean isStreaming(Statement statement) throws SQLException {
    return statement.getFetchSize() != 0;
  }

  @Override
  public boolean isInTransaction() {
    return (connection.getContext().getServerStatus() & ServerStatus.IN_TRANSACTION) != 0;
  }
}
