package io.antipode.dynamodb;

import io.antipode.aws.Homes;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/** What the shim of DynamoDB decides without a service: next to what it is made of. */
public final class DynamoDbDecisions {
  private DynamoDbDecisions() {}

  /**
   * An item of a region.
   *
   * @param stamp null without one
   * @param value what else is in it
   */
  public record Stands(@Nullable Long stamp, String value) {}

  /**
   * Returns what the last of some polls of a region says of each write.
   *
   * @param polls what they find: of each region that answers, the items of its tables by their keys
   * @param now the Unix microsecond of the polls
   */
  public static List<Status> poll(
      String region,
      List<Map<String, Map<String, Map<String, Stands>>>> polls,
      List<WriteId> writes,
      long now)
      throws Exception {
    Homes<Shown> homes = new Homes<>();
    Observation shown = Observation.of(region).build();
    for (Map<String, Map<String, Map<String, Stands>>> tables : polls) {
      shown =
          Look.at(
              region,
              writes,
              homes,
              (asked, items, wanted) -> {
                Map<String, Map<String, Stands>> found = tables.get(asked);
                if (found == null) {
                  throw new IOException("away");
                }
                return shown(found, items, wanted);
              },
              now);
    }
    return writes.stream().map(shown::status).toList();
  }

  private static Map<Item, Shown> shown(
      Map<String, Map<String, Stands>> tables, Set<Item> items, Look.Wanted wanted) {
    Map<Item, Shown> shown = new HashMap<>();
    for (Item item : items) {
      Map<String, Stands> table = tables.get(item.table());
      if (table == null) {
        continue;
      }
      String named = item.named("");
      Stands found = table.get(named.substring(item.table().length() + 1, named.length() - 1));
      shown.put(
          item,
          found == null
              ? Shown.ABSENT
              : new Shown(true, found.stamp, wanted == Look.Wanted.WHOLE ? found.value : "", ""));
    }
    return shown;
  }

  /** Returns how an item is named as something that was written in a region; null for no item. */
  public static @Nullable String named(
      String table, Map<String, AttributeValue> key, String region) {
    Item item = Item.of(table, key);
    if (item == null) {
      return null;
    }
    String named = item.named(region);
    if (!new Place(item, region).equals(Place.parse(named))) {
      throw new IllegalStateException("a reader finds another item than " + named);
    }
    return named;
  }

  /** Returns what an operation does. */
  public static String kind(String operation, List<@Nullable String> statements) {
    return Commands.kind(operation, statements).name().toLowerCase(Locale.ROOT);
  }

  /** Returns the expression of an update that sets the stamp, too. */
  public static String expression(String given) {
    return Updates.expression(given);
  }

  /**
   * A statement of PartiQL; nothing of one that is not understood.
   *
   * @param text as it is sent with the stamp 7
   * @param item how what it writes is named in {@code us-east-1}
   */
  public record Stamped(@Nullable String text, @Nullable String item) {}

  /** Returns how a statement sets the stamp, and what it writes in a table with a key. */
  public static Stamped stamped(
      String statement, List<AttributeValue> parameters, List<String> key) {
    @Nullable Statement understood = Statement.parse(statement, parameters);
    if (understood == null) {
      return new Stamped(null, null);
    }
    @Nullable Item item = Item.of(understood.table(), understood.values(), key);
    return new Stamped(understood.stamped(7), item == null ? null : item.named("us-east-1"));
  }

  /** Returns the lineage that lies in an item. */
  public static Lineage found(Map<String, AttributeValue> item) {
    return Stored.lineageOf(item, "posts");
  }
}
