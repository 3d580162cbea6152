package io.antipode.mysql;

import com.mysql.cj.jdbc.JdbcConnection;
import com.mysql.cj.protocol.ServerSessionStateController;
import com.mysql.cj.protocol.ServerSessionStateController.SessionStateChange;
import com.mysql.cj.protocol.ServerSessionStateController.SessionStateChangesListener;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * The GTIDs that MySQL sends with the replies to a session's commits, as Connector/J passes them
 * on. The driver refers to its listeners weakly, so whoever opened the connection keeps this.
 */
final class ConnectorJ {
  private final List<String> gtids = new ArrayList<>();
  private final SessionStateChangesListener listener =
      changes ->
          changes.getSessionStateChangesList().stream()
              .filter(ConnectorJ::isOfGtids)
              .forEach(each -> gtids.addAll(each.getValues()));

  private ConnectorJ() {}

  private static boolean isOfGtids(SessionStateChange change) {
    return change.getType() == ServerSessionStateController.SESSION_TRACK_GTIDS;
  }

  /** Listens to a connection that was opened with {@code trackSessionState}. */
  static ConnectorJ on(Connection connection) throws SQLException {
    ConnectorJ tracked = new ConnectorJ();
    connection
        .unwrap(JdbcConnection.class)
        .getServerSessionStateController()
        .addSessionStateChangesListener(tracked.listener);
    return tracked;
  }

  /** Returns what was reported since it was asked last, as a set of GTIDs. */
  String take() {
    String taken = String.join(",", gtids);
    gtids.clear();
    return taken;
  }
}
