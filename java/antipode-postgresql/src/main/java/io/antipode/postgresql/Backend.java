package io.antipode.postgresql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.postgresql.core.PGStream;
import org.postgresql.core.QueryExecutor;
import org.postgresql.core.QueryExecutorBase;

/**
 * A connection's process at its server, and what distinguishes it from those of other servers.
 *
 * @param process its number, as the server told the client
 * @param host the client's own address. A server that sees it, and the port, has no pooler or
 *     balancer before it
 * @param port the client's own port
 */
record Backend(String process, String host, int port) {
  /** The open transaction may have its snapshot, or nobody can say that it has none. */
  static final class UnprovedException extends Exception {
    private static final long serialVersionUID = 1L;

    UnprovedException(@Nullable Exception cause) {
      super(cause);
    }
  }

  /**
   * Returns that of a connection; null where its socket, which the driver hides, has no address.
   */
  static @Nullable Backend of(QueryExecutor executor) {
    Socket socket = socket(executor);
    InetAddress address = socket == null ? null : socket.getLocalAddress();
    if (socket == null || address == null || socket.getLocalPort() <= 0) {
      return null;
    }
    String host = address.getHostAddress();
    int scope = host.indexOf('%');
    return new Backend(
        Integer.toString(executor.getBackendPID()),
        scope < 0 ? host : host.substring(0, scope),
        socket.getLocalPort());
  }

  private static @Nullable Socket socket(QueryExecutor executor) {
    try {
      Field stream = QueryExecutorBase.class.getDeclaredField("pgStream");
      stream.setAccessible(true);
      return ((PGStream) Objects.requireNonNull(stream.get(executor))).getSocket();
    } catch (ReflectiveOperationException | RuntimeException hidden) {
      return null; // Of another version: reads go without the proof, and are refused.
    }
  }

  /**
   * Polls once, on another connection, for what the first read of a transaction will see.
   *
   * @throws UnprovedException if that server does not show that this backend has an open
   *     transaction, and no snapshot
   */
  Observation look(PostgreSqlShim shim, Floor floor, Duration most) throws UnprovedException {
    try (Link link = shim.connect(most)) {
      Observation seen = shim.look(link, floor.writes(), floor.promises(), most);
      // Afterwards: whoever takes the snapshot, it will be later than what was seen.
      if (!link.ask(Look.unread(this)).get(0).getOrDefault("unread", "").equals("t")) {
        throw new UnprovedException(null);
      }
      return seen;
    } catch (SQLException | UnreachableException unanswered) {
      throw new UnprovedException(unanswered);
    }
  }
}
