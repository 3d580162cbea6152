package io.antipode.mongodb;

import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.util.List;
import java.util.Locale;
import org.bson.BsonDocument;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/** What the shim of MongoDB decides without a server: next to what it is made of. */
public final class MongoDecisions {
  private MongoDecisions() {}

  /** A place in an oplog. */
  public record Place(long term, long version) {
    private OpTime opTime() {
      return new OpTime(term, version);
    }
  }

  /**
   * Where a server stands.
   *
   * @param heard the latest version that it has heard of
   */
  public record Server(
      String set, Place applied, Place committed, boolean isPrimary, long initiatedS, long heard) {
    private ServerState state() {
      return new ServerState(
          set, applied.opTime(), committed.opTime(), isPrimary, initiatedS, "", heard);
    }
  }

  /**
   * A server that is polled.
   *
   * @param isMajority whether reads have the concern {@code majority}
   * @param oplog the entries that are there, in their order; none where it may not be read
   */
  public record Polled(Server server, boolean isMajority, List<Place> oplog) {
    private Observation look(LogHistory history, WriteId write) {
      LogHistory.Oplog asked =
          version ->
              oplog.stream()
                  .filter(each -> Long.compareUnsigned(each.version, version) >= 0)
                  .map(Place::opTime)
                  .findFirst()
                  .orElse(null);
      return new Look(history, isMajority).at(server.state(), List.of(write), asked).build();
    }
  }

  /**
   * Returns what the last of several polls of servers says of each write; the earlier ones are
   * remembered.
   */
  public static List<Status> poll(List<Polled> polls, List<WriteId> writes) {
    return writes.stream()
        .map(
            write -> {
              LogHistory history = new LogHistory();
              Observation shown = Observation.of("").build();
              for (Polled poll : polls) {
                shown = poll.look(history, write);
              }
              return shown.status(write);
            })
        .toList();
  }

  /** A log and a version in it. */
  public record Named(String key, long version) {}

  /** Returns what a write or a read is named by; null where a reply does not show it. */
  public static @Nullable Named position(
      boolean isWrite,
      boolean isMajority,
      @Nullable Place written,
      @Nullable Long operation,
      @Nullable Server server) {
    Positions.Told told =
        new Positions.Told(
            written == null ? null : written.opTime(),
            operation,
            server == null ? null : server.state());
    Positions.@Nullable Position found =
        isWrite
            ? Positions.ofWrite(told, "rs", isMajority)
            : Positions.ofRead(told, "rs", isMajority);
    return found == null ? null : new Named(found.key(), found.version());
  }

  /** Returns what a command does, given as JSON. */
  public static String kind(String command) {
    return Commands.kind(BsonDocument.parse(command)).name().toLowerCase(Locale.ROOT);
  }

  /** A stored lineage, and whether it is the value's own. */
  public record Found(Lineage lineage, String match) {}

  /**
   * Returns what the field {@code ap} of a document, given as JSON, has as a lineage: of its {@code
   * value}, or whatever that is.
   */
  public static Found found(String json) {
    BsonDocument document = BsonDocument.parse(json);
    BsonValue beside = document.get("ap");
    Beside.Stored stored =
        document.containsKey("value")
            ? Beside.found(document.get("value"), beside, "posts")
            : Beside.found(beside, "posts");
    return new Found(stored.lineage(), stored.match().metric());
  }
}
