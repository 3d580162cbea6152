package io.antipode.dynamodb;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.Put;

/**
 * The records of promises: items of one table, and how a transaction writes them. Regions copy its
 * items one by one, so a record names what its transaction wrote, and counts once all of that is
 * there. That a promise is given up is not recorded: two regions could record the opposite.
 */
final class Records {
  static final String TABLE = "antipode_promises";

  /** The attribute with the writes of a record's transaction. */
  static final String WRITES = "writes";

  private static final String ID = "id";
  private static final String UNTIL = "until";

  /** What an instrumented client fills in; until then the record says nothing. */
  private static final AttributeValue OPEN = AttributeValue.fromS("");

  private Records() {}

  /** Returns the put of a record that does not name yet what its transaction writes. */
  static Put fulfilling(Promise promise, Duration life, String table) {
    long until = Time.now().plus(life).getEpochSecond();
    return Put.builder()
        .tableName(table)
        .item(
            Map.of(
                ID,
                AttributeValue.fromS(promise.id()),
                UNTIL,
                AttributeValue.fromN(Long.toString(until)),
                WRITES,
                OPEN))
        .build();
  }

  /** Returns whether a put of a transaction is such a record. */
  static boolean isOpen(@Nullable Put put) {
    return put != null
        && OPEN.equals(put.item().get(WRITES))
        && put.item().keySet().equals(Set.of(ID, UNTIL, WRITES));
  }

  /** Returns the put of a record, with what its transaction writes. */
  static Put naming(Put put, Collection<WriteId> writes) {
    Map<String, AttributeValue> item = new HashMap<>(put.item());
    item.put(WRITES, AttributeValue.fromS(Lineage.of(writes.toArray(new WriteId[0])).serialize()));
    return put.toBuilder().item(item).build();
  }

  /** Returns the item that says what became of a promise. */
  static Item of(Promise promise, String table) {
    return new Item(table, List.of(new Item.Attribute(ID, 'S', promise.id())));
  }

  /** Returns the writes that a record names; empty where it names none that can be read. */
  static List<WriteId> writesIn(String text) {
    try {
      return text.isEmpty() ? List.of() : List.copyOf(Lineage.deserialize(text).writes());
    } catch (LineageDecodeException error) {
      return List.of();
    }
  }
}
