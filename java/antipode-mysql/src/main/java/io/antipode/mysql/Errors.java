package io.antipode.mysql;

import io.antipode.barrier.UnreachableException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.Set;

/** What a driver's errors say. */
final class Errors {
  static final Set<Integer> NO_TABLE = Set.of(1049, 1146);
  static final Set<Integer> NO_COLUMN = Set.of(1054);
  static final Set<Integer> DENIED = Set.of(1044, 1142, 1143);

  /** A statement was not executed: it does not parse, or names no table that there is. */
  static final Set<Integer> UNREAD = Set.of(1064, 1146);

  /**
   * Nor one that names a column that does not exist, or that a read-only transaction may not have:
   * unless a trigger, a function or a view had read by then.
   */
  static final Set<Integer> UNRESOLVED = Set.of(1054, 1792);

  /**
   * Nor one that its user may not run, that names what there is not, that a server refuses which
   * only reads, or that lost a transaction's locks.
   */
  private static final Set<Integer> UNWRITTEN =
      Set.of(
          1044, 1045, 1046, 1049, 1052, 1054, 1064, 1093, 1099, 1100, 1109, 1110, 1136, 1142, 1143,
          1146, 1205, 1213, 1227, 1290, 1305, 1318, 1370, 1785, 1792, 1836);

  /** The server is starting, stopping or full; a later poll may succeed. */
  private static final Set<Integer> PASSING =
      Set.of(1040, 1053, 1077, 1078, 1079, 1129, 1203, 1205, 1213, 1226, 1317, 1927, 3032);

  /** The server ended the session, or is going away: nobody knows how far a statement came. */
  private static final Set<Integer> ENDING = Set.of(1053, 1077, 1078, 1079, 1317, 1927, 3032);

  private Errors() {}

  private static boolean isAnswer(SQLException error) {
    int number = error.getErrorCode();
    return (number >= 1000 && number < 2000) || (number >= 3000 && number < 5000);
  }

  /** Returns whether the server's error of this number leaves no rows of its statement. */
  static boolean isUnwritten(int number) {
    return UNWRITTEN.contains(number);
  }

  /** Returns whether a statement that failed so did nothing. */
  static boolean isRefusal(SQLException error) {
    return isAnswer(error) && !ENDING.contains(error.getErrorCode());
  }

  /** Returns whether nobody knows what the server did: it does not answer, or gave it up. */
  static boolean isLoss(SQLException error) {
    String state = error.getSQLState();
    return error instanceof SQLTimeoutException
        || ENDING.contains(error.getErrorCode())
        || (state != null && state.startsWith("08"));
  }

  /**
   * Returns an answer that asking again does not change.
   *
   * @throws UnreachableException if there is no answer now, or the error passes
   */
  static RefusedException refused(SQLException error) {
    String message = String.valueOf(error.getMessage());
    if (!isAnswer(error) || PASSING.contains(error.getErrorCode())) {
      throw new UnreachableException(message, error);
    }
    return RefusedException.lasting(message, error.getErrorCode());
  }
}
