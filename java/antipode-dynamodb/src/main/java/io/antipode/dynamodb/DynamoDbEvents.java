package io.antipode.dynamodb;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.OperationType;
import software.amazon.awssdk.services.dynamodb.model.Record;
import software.amazon.awssdk.services.dynamodb.model.StreamRecord;

/**
 * Lineages of records of a table's stream: each is the write that it reports. Nobody is asked. A
 * write of an instrumented client has a stamp, which the record shows where the stream has new
 * images, and for a change old ones, too. What has none is waited for as of now: until the region
 * of the reader shows of that item what the region of the stream shows.
 */
public final class DynamoDbEvents {
  private DynamoDbEvents() {}

  /**
   * Returns what a record depends on.
   *
   * @param datastore the name that every service spells alike, of the table's items
   * @param table its name, or the ARN of its stream
   * @param record as {@code GetRecords} returns it
   * @return the write; as of now, it is a covering one
   * @throws IllegalArgumentException if it names no item
   */
  public static Lineage lineage(String datastore, String table, Record record) {
    StreamRecord told = record.dynamodb();
    Item item = told == null ? null : Item.of(table, told.keys());
    String key = item == null ? "" : item.named(String.valueOf(record.awsRegion()));
    OperationType kind = record.eventName();
    if (told == null
        || Place.parse(key) == null
        || kind == null
        || kind == OperationType.UNKNOWN_TO_SDK_VERSION) {
      throw new IllegalArgumentException(
          "a record of a stream of DynamoDB that names no item of table " + table);
    }
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    Long stamp = kind == OperationType.REMOVE ? null : stamp(told, kind == OperationType.MODIFY);
    long version = stamp == null ? Stamps.OF_PROCESS.next(kind == OperationType.REMOVE, 0) : stamp;
    WriteId write = WriteId.of(datastore, key, version).writtenAt(Time.hour());
    return Lineage.of(stamp == null ? write.asCovering() : write);
  }

  /** Returns the write's own stamp; null where it has none, or may have left that of another. */
  private static @Nullable Long stamp(StreamRecord told, boolean isChange) {
    Long stamp = Stored.stampOf(told.newImage());
    if (stamp == null || stamp <= 0 || Stamps.isDeletion(stamp)) {
      return null;
    }
    boolean isOwn =
        !isChange || (told.hasOldImage() && !stamp.equals(Stored.stampOf(told.oldImage())));
    return isOwn ? stamp : null;
  }
}
