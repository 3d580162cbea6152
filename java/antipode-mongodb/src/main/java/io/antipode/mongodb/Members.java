package io.antipode.mongodb;

import com.mongodb.MongoClientSettings;
import com.mongodb.ReadPreference;
import com.mongodb.ServerAddress;
import com.mongodb.client.MongoClients;
import com.mongodb.connection.ClusterConnectionMode;
import com.mongodb.connection.ClusterSettings;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Connections of the library's own to single members of a set, for questions that a client's own
 * connections cannot be asked: the driver is in the middle of a command there. Thread-safe.
 */
final class Members implements AutoCloseable {
  private final MongoClientSettings settings;
  private final Map<ServerAddress, Link> links = new HashMap<>();
  private boolean isClosed;

  /** Connects as a client with these settings does; nobody listens. */
  Members(MongoClientSettings settings) {
    this.settings = settings;
  }

  /** Returns the way to one member, whatever it is now. */
  synchronized Link at(ServerAddress member) {
    if (isClosed) {
      throw new IllegalStateException("the shim of this client is closed");
    }
    return links.computeIfAbsent(
        member,
        address -> new Link(MongoClients.create(to(address)), ReadPreference.nearest(), null));
  }

  private MongoClientSettings to(ServerAddress member) {
    ClusterSettings alone =
        ClusterSettings.builder().mode(ClusterConnectionMode.SINGLE).hosts(List.of(member)).build();
    return MongoClientSettings.builder(settings)
        .applicationName("antipode")
        .autoEncryptionSettings(null)
        .commandListenerList(List.of())
        .applyToClusterSettings(cluster -> cluster.applySettings(alone))
        .applyToServerSettings(MongoShim::soonSeesServers)
        .build();
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    links.values().forEach(link -> link.client().close());
    links.clear();
  }
}
