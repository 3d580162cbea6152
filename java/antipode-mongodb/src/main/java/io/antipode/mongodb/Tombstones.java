package io.antipode.mongodb;

import io.antipode.lineage.Lineage;
import org.bson.BsonArray;
import org.bson.BsonDocument;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * Where deletions leave their lineage: one for each deleted id, and a few for all deletions of a
 * collection. They are written before the deletion, so that whoever has that has them.
 */
final class Tombstones {
  /** Several, so that deletions at once do not wait for each other. */
  private static final int SLOTS = 8;

  private Tombstones() {}

  private static String collection(String name) {
    return name + ".antipode";
  }

  private static BsonDocument slot(String kind, int number) {
    return Bson.doc("antipode", kind, "n", number);
  }

  /**
   * Returns the command that leaves the tombstones of a document, merged with those that lie there:
   * a deletion that deletes nothing must not hide the lineage of the one that did.
   *
   * @param nth a number by which deletions of a client are distinguished
   * @param added the expression of what they hold then
   */
  static BsonDocument bury(String collection, BsonValue id, int nth, BsonDocument added) {
    BsonDocument stage = Bson.doc("$set", Bson.doc(Beside.FIELD, added, "at", "$$NOW"));
    BsonArray updates = new BsonArray();
    for (BsonValue each : Bson.list(id, slot("known", Math.floorMod(nth, SLOTS)))) {
      updates.add(Bson.doc("q", Bson.doc("_id", each), "u", Bson.list(stage), "upsert", true));
    }
    return Bson.doc("update", collection(collection), "updates", updates, "ordered", false);
  }

  /** Returns the command that finds what deletions of a document left; null: of all documents. */
  static BsonDocument search(String collection, @Nullable BsonValue id) {
    BsonArray ids = new BsonArray();
    if (id != null) {
      ids.add(id);
    }
    for (int number = 0; number < SLOTS; number++) {
      ids.add(slot("unknown", number));
      if (id == null) {
        ids.add(slot("known", number));
      }
    }
    return Bson.doc(
        "find",
        collection(collection),
        "filter",
        Bson.doc("_id", Bson.doc("$in", ids)),
        "projection",
        Bson.doc(Beside.FIELD, 1),
        "batchSize",
        ids.size() + 1,
        "singleBatch",
        true);
  }

  /** Returns what the tombstones of a reply say. */
  static Lineage lineage(BsonDocument reply, String datastore) {
    Lineage lineage = Lineage.empty();
    for (BsonDocument each : Bson.docsAt(reply, "cursor", "firstBatch")) {
      lineage = lineage.merge(Beside.found(each.get(Beside.FIELD), datastore).lineage());
    }
    return lineage;
  }
}
