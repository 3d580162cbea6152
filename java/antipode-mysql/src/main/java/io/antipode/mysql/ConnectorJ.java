package io.antipode.mysql;

import com.mysql.cj.NativeSession;
import com.mysql.cj.jdbc.JdbcConnection;
import com.mysql.cj.protocol.ServerSession;
import com.mysql.cj.protocol.ServerSessionStateController;
import com.mysql.cj.protocol.ServerSessionStateController.SessionStateChange;
import com.mysql.cj.protocol.ServerSessionStateController.SessionStateChangesListener;
import io.antipode.jdbc.BorrowedConnection;
import io.antipode.mysql.Transaction.Word;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A connection of Connector/J, which passes on the GTIDs that come with replies to commits. */
record ConnectorJ(JdbcConnection connection) implements Wire {
  private static final String TRACKING = "trackSessionState";

  /** The protocol's flag of a reply that reports changes of the session. */
  private static final int SESSION_CHANGED = 1 << 14;

  static @Nullable Wire wire(Connection connection) throws SQLException {
    return connection.isWrapperFor(JdbcConnection.class)
        ? new ConnectorJ(BorrowedConnection.unwrapped(connection, JdbcConnection.class))
        : null;
  }

  private ServerSession session() {
    return connection.getSession().getServerSession();
  }

  /**
   * The driver clears the word before each reply, and does not read that of a ping, of what is
   * prepared or closed, and of an error. Then it puts the bit of a transaction back in, as it was.
   */
  @Override
  public Word word() {
    boolean isInTransaction = session().inTransactionOnServer();
    if (session().isAutocommit()) {
      return new Word(Known.YES, Known.of(isInTransaction));
    }
    return isInTransaction ? new Word(Known.UNKNOWN, Known.YES) : Word.SILENT;
  }

  @Override
  public Word wholeWord() {
    return new Word(
        Known.of(session().isAutocommit()), Known.of(session().inTransactionOnServer()));
  }

  @Override
  public boolean hasWarnings() {
    return connection.getSession() instanceof NativeSession session
        && session.getProtocol().getWarningCount() > 0;
  }

  @Override
  public boolean hasChanged() {
    return (session().getStatusFlags() & SESSION_CHANGED) != 0;
  }

  @Override
  public OptionalLong accepted() {
    return OptionalLong.of(connection.getId());
  }

  /**
   * Listens; the driver refers to its listeners weakly, and one may not refer to its connection.
   */
  @Override
  public @Nullable Object listen(Consumer<String> gtids) {
    if (!connection.getPropertySet().getBooleanProperty(TRACKING).getValue()) {
      return null;
    }
    SessionStateChangesListener listener =
        changes ->
            changes.getSessionStateChangesList().stream()
                .filter(ConnectorJ::isOfGtids)
                .forEach(each -> each.getValues().forEach(gtids));
    connection.getServerSessionStateController().addSessionStateChangesListener(listener);
    return listener;
  }

  private static boolean isOfGtids(SessionStateChange change) {
    return change.getType() == ServerSessionStateController.SESSION_TRACK_GTIDS;
  }

  @Override
  public boolean isStreaming(int fetchSize) {
    return fetchSize == Integer.MIN_VALUE;
  }
}
