package io.antipode.mongodb;

import org.bson.BsonDocument;
import org.jspecify.annotations.Nullable;

/**
 * A place in an oplog, ordered as the servers order them.
 *
 * @param term of the primary that wrote the entry; -1 for the one that initiated the set
 * @param version its BSON timestamp as one unsigned integer
 */
record OpTime(long term, long version) implements Comparable<OpTime> {
  private static final int INCREMENT_BITS = 32;

  /** Returns the Unix second in which a position was issued, by its primary's clock. */
  static long seconds(long version) {
    return version >>> INCREMENT_BITS;
  }

  /** Returns what {@code {ts, t}} at a path of a reply says; null where there is none. */
  static @Nullable OpTime at(BsonDocument reply, String... path) {
    BsonDocument found = Bson.docAt(reply, path);
    Long term = Bson.integerAt(found, "t");
    Long version = Bson.stampAt(found, "ts");
    return term == null || version == null || term < 0 ? null : new OpTime(term, version);
  }

  static OpTime least(OpTime one, OpTime other) {
    return one.compareTo(other) <= 0 ? one : other;
  }

  @Override
  public int compareTo(OpTime other) {
    int terms = Long.compare(term, other.term);
    return terms != 0 ? terms : Long.compareUnsigned(version, other.version);
  }
}
