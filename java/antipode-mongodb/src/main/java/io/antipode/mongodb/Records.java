package io.antipode.mongodb;

import com.mongodb.MongoException;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Promise;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.bson.BsonArray;
import org.bson.BsonBoolean;
import org.bson.BsonDateTime;
import org.bson.BsonDocument;
import org.bson.BsonString;

/**
 * The records of promises: a collection, and what is said to it. Which record of a promise comes
 * first stays: an upsert that says the opposite finds no document that fits it, and cannot insert
 * another of that id.
 */
final class Records {
  static final String COLLECTION = "antipode_promises";

  private Records() {}

  static List<BsonDocument> ddl() {
    BsonDocument index =
        Bson.doc("key", Bson.doc("until", 1), "name", "until", "expireAfterSeconds", 0);
    return List.of(Bson.doc("createIndexes", COLLECTION, "indexes", Bson.list(index)));
  }

  /** Returns which document is the record of what became of a promise. */
  static BsonDocument filter(Promise promise, boolean isFulfilled) {
    return Bson.doc("_id", promise.id(), "fulfilled", isFulfilled);
  }

  /** Returns what an upsert of it says. */
  static BsonDocument recording(Duration life) {
    long until = Time.now().plus(life).toEpochMilli();
    return Bson.doc("$setOnInsert", Bson.doc("until", new BsonDateTime(until)));
  }

  /**
   * Records that a promise is abandoned; waits for a transaction that is about to fulfil it.
   *
   * @return whether it is abandoned; false where it was fulfilled before
   * @throws UnreachableException if the server takes no writes now
   * @throws ConfigurationException if this user may not write there
   */
  static boolean abandon(Link link, String database, Promise promise, Duration life) {
    BsonDocument update =
        Bson.doc("q", filter(promise, false), "u", recording(life), "upsert", true);
    BsonDocument command =
        Bson.doc(
            "update", COLLECTION, "updates", Bson.list(update), "writeConcern", Bson.doc("w", 1));
    try {
      List<BsonDocument> errors = Bson.docsAt(link.write(database, command), "writeErrors");
      if (errors.isEmpty()) {
        return true;
      }
      if (Errors.code(errors.get(0)) != Errors.DUPLICATE) {
        throw new UnreachableException(Bson.textAt(errors.get(0), "errmsg"));
      }
      BsonDocument found = link.write(database, search(List.of(promise), false));
      return read(found, List.of(promise)).get(promise) == Status.ABANDONED;
    } catch (MongoException error) {
      throw Errors.lasting(explained(error, database));
    }
  }

  /** Returns the command that finds the records of promises. */
  static BsonDocument search(Collection<Promise> promises, boolean isMajority) {
    BsonArray ids = new BsonArray();
    promises.forEach(promise -> ids.add(new BsonString(promise.id())));
    return Bson.doc(
        "find",
        COLLECTION,
        "filter",
        Bson.doc("_id", Bson.doc("$in", ids)),
        "projection",
        Bson.doc("fulfilled", 1),
        "batchSize",
        ids.size() + 1,
        "singleBatch",
        true,
        "readConcern",
        Bson.doc("level", isMajority ? "majority" : "local"));
  }

  /** Returns what the reply to {@link #search} says; promises without a record are left out. */
  static Map<Promise, Status> read(BsonDocument reply, Collection<Promise> promises) {
    Map<String, Status> said = new HashMap<>();
    for (BsonDocument each : Bson.docsAt(reply, "cursor", "firstBatch")) {
      boolean isFulfilled = BsonBoolean.TRUE.equals(each.get("fulfilled"));
      said.put(Bson.textAt(each, "_id"), isFulfilled ? Status.VISIBLE : Status.ABANDONED);
    }
    Map<Promise, Status> found = new HashMap<>();
    for (Promise promise : promises) {
      Status status = said.get(promise.id());
      if (status != null) {
        found.put(promise, status);
      }
    }
    return found;
  }

  /**
   * Returns an error that is none of the user's rights.
   *
   * @throws ConfigurationException if it is
   */
  static MongoException explained(MongoException error, String database) {
    if (error.getCode() != Errors.UNAUTHORIZED) {
      return error;
    }
    throw new ConfigurationException(
        "this user may not use the promises in "
            + database
            + "."
            + COLLECTION
            + ": who fulfils or abandons needs find, insert and update there, who waits find ("
            + error.getMessage()
            + ")");
  }
}
