package io.antipode.postgresql;

import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.Table2.Fault;
import java.sql.SQLException;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** What the driver's errors say. */
final class Errors {
  /**
   * Classes of errors that a later poll may not meet: of the connection, of resources, of a
   * conflict with replay, of a server that starts or stops.
   */
  private static final Set<String> PASSING = Set.of("08", "40", "53", "55", "57");

  /** The server ended the session: nobody knows how far a statement came. */
  private static final Set<String> ENDING = Set.of("57P01", "57P02", "57P03", "57P05");

  private Errors() {}

  /** Returns whether the server answered with it; else the driver made it, before or after. */
  static boolean isServers(Throwable error) {
    for (@Nullable Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof PSQLException one) {
        ServerErrorMessage message = one.getServerErrorMessage();
        if (message != null) {
          return true;
        }
      }
    }
    return false;
  }

  /** Returns whether the connection is lost, so that nobody knows what the server did. */
  static boolean isLoss(SQLException error) {
    String state = error.getSQLState();
    return state != null && (state.startsWith("08") || ENDING.contains(state));
  }

  /** Returns what it says of the library's own tables. */
  static Fault fault(SQLException error) {
    if (!isServers(error) || isLoss(error)) {
      return Fault.LOST;
    }
    return switch (String.valueOf(error.getSQLState())) {
      case "42P01", "3F000" -> Fault.NO_TABLE;
      case "42703" -> Fault.NO_COLUMN;
      case "42501" -> Fault.DENIED;
      default -> Fault.REFUSED;
    };
  }

  /**
   * Returns an answer that asking again does not change.
   *
   * @throws UnreachableException if there is no answer now, or the error passes
   */
  static RefusedException refused(SQLException error) {
    String message = String.valueOf(error.getMessage());
    String state = error.getSQLState();
    if (state == null || !isServers(error) || PASSING.contains(state.substring(0, 2))) {
      throw new UnreachableException(message, error);
    }
    return new RefusedException(message, state);
  }
}
