package io.antipode.mysql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import net.ttddyy.dsproxy.listener.MethodExecutionContext;
import org.jspecify.annotations.Nullable;

/** What a call of JDBC does that sends statements, but for those that the application wrote. */
enum Called {
  COMMIT("COMMIT"),
  ROLLBACK("ROLLBACK"),
  ROLLBACK_TO("ROLLBACK TO SAVEPOINT s"),
  AUTOCOMMIT("SET autocommit = 1"),
  ISOLATION("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
  /** Connector/J asks for the parameters of a procedure, and for all that its metadata shows. */
  DRIVERS(Effect.MAY_SNAPSHOT),
  /** Connector/J makes the query to learn the columns of a statement that was not executed. */
  COLUMNS(Effect.SNAPSHOT),
  ROW_READ(Effect.READS),
  ROW_WRITE(Effect.WRITES);

  /** The statement that it stands for; null where the driver makes its own. */
  private final @Nullable String sql;

  private final @Nullable Effect effect;

  Called(Effect effect) {
    this.sql = null;
    this.effect = effect;
  }

  Called(String sql) {
    this.sql = sql;
    this.effect = null;
  }

  Set<Effect> effects() {
    return sql == null ? EnumSet.of(Objects.requireNonNull(effect)) : Statements.effects(sql);
  }

  /** Returns whether the last reply of the driver's is that to the statement it stands for. */
  boolean isAnswered() {
    return sql != null;
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
