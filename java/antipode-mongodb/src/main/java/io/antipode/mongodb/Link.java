package io.antipode.mongodb;

import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.ReadPreference;
import com.mongodb.ServerAddress;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoDatabase;
import io.antipode.barrier.UnreachableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.bson.BsonDocument;
import org.bson.BsonTimestamp;
import org.jspecify.annotations.Nullable;

/** Commands to the servers of a client: no more than that is asked of the driver. */
final class Link implements LogHistory.Oplog {
  private final MongoClient client;
  private final ReadPreference preference;
  private final @Nullable Supplier<Duration> most;

  /**
   * Uses a client.
   *
   * @param preference which server reads
   * @param most the longest that the next question may last; null: as the client has it
   */
  Link(MongoClient client, ReadPreference preference, @Nullable Supplier<Duration> most) {
    this.client = client;
    this.preference = preference;
    this.most = most;
  }

  /** Returns the same for questions that each last no longer; the server gives them up, too. */
  Link within(Duration most) {
    return new Link(client, preference, () -> most);
  }

  /** Returns the same for questions that last no longer from now on, all together. */
  Link allWithin(Duration most) {
    long deadlineNs = System.nanoTime() + most.toNanos();
    return new Link(client, preference, () -> Duration.ofNanos(deadlineNs - System.nanoTime()));
  }

  MongoClient client() {
    return client;
  }

  /** Returns a database as the driver has it, whose replies are plain. */
  MongoDatabase database(String name) {
    MongoDatabase database =
        client.getDatabase(name).withCodecRegistry(MongoClientSettings.getDefaultCodecRegistry());
    return most == null
        ? database
        : database.withTimeout(Math.max(most.get().toMillis(), 1), TimeUnit.MILLISECONDS);
  }

  /**
   * Returns what the primary replies.
   *
   * @throws MongoException as the driver does
   */
  BsonDocument write(String database, BsonDocument command) {
    return database(database).runCommand(command, ReadPreference.primary(), BsonDocument.class);
  }

  /**
   * Returns what a server replies that this client reads from.
   *
   * @throws MongoException as the driver does
   */
  BsonDocument read(String database, BsonDocument command) {
    return database(database).runCommand(command, preference, BsonDocument.class);
  }

  /**
   * Returns where the server stands that this client reads from.
   *
   * @throws MongoException as the driver does
   * @throws UnreachableException if the server has no data to read now
   */
  ServerState hello() {
    return state(read("admin", ServerState.asking(Bson.doc("hello", 1))));
  }

  /** Returns where the primary stands; as {@link #hello} otherwise. */
  ServerState helloPrimary() {
    return state(write("admin", ServerState.asking(Bson.doc("hello", 1))));
  }

  private static ServerState state(BsonDocument reply) {
    ServerState state = ServerState.ofHello(reply);
    if (state == null) {
      throw new UnreachableException(
          "the server is neither primary nor secondary now: it recovers, or is an arbiter");
    }
    return state;
  }

  /** Returns the first entry of the oplog at or after a version; timestamps are its own order. */
  @Override
  public @Nullable OpTime firstFrom(long version) {
    BsonDocument find =
        Bson.doc(
            "find",
            "oplog.rs",
            "filter",
            Bson.doc("ts", Bson.doc("$gte", new BsonTimestamp(version))),
            "sort",
            Bson.doc("$natural", 1),
            "projection",
            Bson.doc("ts", 1, "t", 1),
            "limit",
            1,
            "singleBatch",
            true);
    List<BsonDocument> found;
    try {
      found = Bson.docsAt(read("local", find), "cursor", "firstBatch");
    } catch (MongoException error) {
      if (error.getCode() == Errors.UNAUTHORIZED) {
        return null;
      }
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
    if (found.isEmpty()) {
      return null;
    }
    Long term = Bson.integerAt(found.get(0), "t");
    Long at = Bson.stampAt(found.get(0), "ts");
    return at == null ? null : new OpTime(term == null ? -1 : term, at);
  }

  /** Returns the address of the primary, for messages. */
  ServerAddress primary() {
    return client.getClusterDescription().getServerDescriptions().stream()
        .filter(server -> server.isPrimary())
        .map(server -> server.getAddress())
        .findFirst()
        .orElseGet(ServerAddress::new);
  }
}
