package io.antipode.mongodb;

import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.Set;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/** Whether reads show what a majority has, or all that their server has applied. Thread-safe. */
final class Concerns {
  private static final Set<String> COMMITTED = Set.of("majority", "snapshot");

  /** How long what the servers say is believed: an administrator may change it. */
  private static final Duration FRESH = Duration.ofMinutes(1);

  private final String datastore;
  private volatile boolean isMajorityByDefault;
  private volatile @Nullable Long askedNs;

  /** Whether a read of this client had such a concern: batches of cursors do not say theirs. */
  private volatile boolean areCursorsMajority;

  Concerns(String datastore) {
    this.datastore = datastore;
  }

  /** Returns whether a command reads what a majority has; asks who says nothing. */
  boolean isMajority(BsonDocument command, Link server, Duration most) {
    if (command.getFirstKey().equals("getMore")) {
      return areCursorsMajority;
    }
    @Nullable BsonValue concern = command.get("readConcern");
    if (concern == null) {
      return byDefault(server, most);
    }
    // One that says something else alone, such as afterClusterTime, is not completed.
    BsonValue level = Bson.at(command, "readConcern", "level");
    return level instanceof BsonString named && COMMITTED.contains(named.getValue());
  }

  /** Notes a read that was answered. */
  void answered(@Nullable String level) {
    if (level != null && COMMITTED.contains(level)) {
      areCursorsMajority = true;
    }
  }

  private boolean byDefault(Link server, Duration most) {
    Long asked = askedNs;
    long now = System.nanoTime();
    if (asked != null && now - asked < FRESH.toNanos()) {
      return isMajorityByDefault;
    }
    BsonDocument question = Bson.doc("getDefaultRWConcern", 1, "inMemory", true);
    try {
      BsonDocument reply = server.within(most).read("admin", question);
      isMajorityByDefault = COMMITTED.contains(Bson.textAt(reply, "defaultReadConcern", "level"));
    } catch (MongoCommandException refused) {
      Counts.logOnce(
          "mongodb_default_read_concern",
          datastore,
          "",
          () ->
              "the servers of "
                  + datastore
                  + " do not show their default read concern, which is taken for 'local': state a"
                  + " readConcern in the settings, or grant getDefaultRWConcern ("
                  + refused.getErrorMessage()
                  + ")");
    } catch (MongoException error) {
      throw Errors.lasting(error);
    }
    askedNs = now;
    return isMajorityByDefault;
  }
}
