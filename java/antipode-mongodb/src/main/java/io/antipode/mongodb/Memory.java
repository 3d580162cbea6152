package io.antipode.mongodb;

import com.mongodb.connection.ConnectionId;
import io.antipode.barrier.Floor;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What is known of the servers behind a client's connections. A server cannot change under one: it
 * closes its clients' connections before it rolls back. Thread-safe.
 */
final class Memory {
  /** What one incarnation of a server shows to reads of either concern. */
  private static final class Server {
    private final String incarnation;
    private Shown local = Shown.NOTHING;
    private Shown committed = Shown.NOTHING;

    Server(String incarnation) {
      this.incarnation = incarnation;
    }

    private synchronized void learn(Shown shown, boolean isMajority) {
      local = local.with(shown);
      committed = isMajority ? committed.with(shown) : committed;
    }

    private synchronized boolean shows(Floor floor, boolean isMajority) {
      return (isMajority ? committed : local).covers(floor);
    }
  }

  private final boolean isMajority;
  private final Map<Long, Server> connections = Recent.map();
  private final Map<String, Server> servers = Recent.map();

  /**
   * Makes one that knows nothing.
   *
   * @param isMajority whether barriers look at what a majority has
   */
  Memory(boolean isMajority) {
    this.isMajority = isMajority;
  }

  /** Returns whether reads on a connection are known to be shown what a floor demands. */
  boolean shows(ConnectionId connection, Floor floor, boolean isMajority) {
    @Nullable Server known = connections.get(connection.getLocalValue());
    boolean isProof = this.isMajority || !isMajority;
    return known != null
        && ((isProof && floor.isProvedOn(known.incarnation)) || known.shows(floor, isMajority));
  }

  /** Notes that a connection goes to a server, and that it shows what a floor demands. */
  void learn(ConnectionId connection, String incarnation, Floor floor, boolean isMajority) {
    Server server = servers.computeIfAbsent(incarnation, Server::new);
    connections.put(connection.getLocalValue(), server);
    server.learn(Shown.of(floor), isMajority);
  }
}
