package io.antipode.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import net.ttddyy.dsproxy.listener.MethodExecutionContext;
import org.jspecify.annotations.Nullable;

/** A call of JDBC that sends statements, or may, but for those that the application wrote. */
public enum Called {
  /** Commits. */
  COMMIT,
  /** Rolls the transaction back. */
  ROLLBACK,
  /** Rolls back to a savepoint. */
  ROLLBACK_TO,
  /** Chooses whether each statement commits on its own. */
  AUTOCOMMIT,
  /** Chooses the isolation of transactions. */
  ISOLATION,
  /** Asks for what a driver knows of the database, or of a procedure's parameters. */
  DRIVERS,
  /** Asks for the columns of a statement that was not executed. */
  COLUMNS,
  /** Reads a row once more. */
  ROW_READ,
  /** Writes a row through a result. */
  ROW_WRITE;

  /** Returns whether the last reply of the driver's is that to the call itself. */
  public boolean isAnswered() {
    return compareTo(DRIVERS) < 0;
  }

  /** Returns what a call is; null for one that sends nothing that matters. */
  static @Nullable Called of(MethodExecutionContext call) {
    String name = call.getMethod().getName();
    Object target = call.getTarget();
    if (target instanceof Connection) {
      Object[] args = call.getMethodArgs();
      return ofConnection(name, args != null && args.length > 0);
    }
    if (target instanceof PreparedStatement) {
      return name.equals("getMetaData") ? COLUMNS : null;
    }
    return target instanceof ResultSet ? ofRow(name) : null;
  }

  private static @Nullable Called ofConnection(String name, boolean hasArgs) {
    return switch (name) {
      case "commit" -> COMMIT;
      case "rollback" -> hasArgs ? ROLLBACK_TO : ROLLBACK;
      case "setAutoCommit" -> AUTOCOMMIT;
      case "setTransactionIsolation" -> ISOLATION;
      case "prepareCall" -> DRIVERS;
      default -> null;
    };
  }

  private static @Nullable Called ofRow(String name) {
    return switch (name) {
      case "insertRow", "updateRow", "deleteRow" -> ROW_WRITE;
      case "refreshRow" -> ROW_READ;
      default -> null;
    };
  }
}
