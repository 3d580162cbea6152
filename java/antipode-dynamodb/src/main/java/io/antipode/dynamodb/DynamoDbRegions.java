package io.antipode.dynamodb;

import io.antipode.aws.Errors;
import io.antipode.aws.Homes;
import io.antipode.aws.Regions;
import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import io.antipode.dynamodb.Look.Wanted;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbServiceClientConfiguration;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchGetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.GetItemRequest;
import software.amazon.awssdk.services.dynamodb.model.GetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.KeysAndAttributes;
import software.amazon.awssdk.services.dynamodb.model.ListTablesResponse;
import software.amazon.awssdk.services.dynamodb.model.ResourceNotFoundException;

/** The clients by which regions are polled. Thread-safe. */
final class DynamoDbRegions extends Regions<DynamoDbClient> {
  /** How many items one request reads, and how often what was left out is asked for again. */
  private static final int MOST_KEYS = 100;

  private static final int MOST_ROUNDS = 5;

  private final Homes<Shown> homes = new Homes<>();
  private final String promiseTable;

  /**
   * Takes what the application's client is configured with.
   *
   * @param others where further regions are, if not where AWS has them
   * @param promiseTable where records of promises are
   */
  DynamoDbRegions(
      DynamoDbServiceClientConfiguration settings, Map<String, URI> others, String promiseTable) {
    super(settings, others);
    this.promiseTable = promiseTable;
  }

  @Override
  protected Observation look(Collection<WriteId> writes) throws Exception {
    return Look.at(here(), writes, homes, this::read);
  }

  @Override
  protected Observation lookFor(Collection<Promise> promises) throws Exception {
    return Look.at(here(), promises, promiseTable, homes, this::read);
  }

  @Override
  protected DynamoDbClient open(String region) {
    return connect(DynamoDbClient.builder(), region);
  }

  // Reading.

  private Map<Item, Shown> read(String region, Set<Item> items, Wanted wanted) {
    DynamoDbClient client = client(region);
    if (items.isEmpty()) {
      answer(client);
    }
    Map<Item, Shown> found = new HashMap<>();
    if (wanted == Wanted.WHOLE || items.size() == 1) {
      items.forEach(each -> readOne(client, each, wanted, found));
      return found;
    }
    List<Item> all = List.copyOf(items);
    for (int start = 0; start < all.size(); start += MOST_KEYS) {
      List<Item> some = all.subList(start, Math.min(start + MOST_KEYS, all.size()));
      try {
        found.putAll(readSome(client, some, wanted));
      } catch (ResourceNotFoundException error) {
        some.forEach(each -> readOne(client, each, wanted, found));
      }
    }
    return found;
  }

  /** Asks for what costs no read units; that it is not allowed is an answer, too. */
  private static void answer(DynamoDbClient client) {
    try {
      ListTablesResponse unused = client.listTables(asked -> asked.limit(1));
    } catch (AwsServiceException error) {
      RuntimeException unused = Errors.lasting(error);
    }
  }

  private static void readOne(
      DynamoDbClient client, Item item, Wanted wanted, Map<Item, Shown> found) {
    GetItemRequest.Builder asked =
        GetItemRequest.builder().tableName(item.table()).key(item.wire()).consistentRead(true);
    if (wanted != Wanted.WHOLE) {
      asked.projectionExpression("#a").expressionAttributeNames(Map.of("#a", attribute(wanted)));
    }
    try {
      GetItemResponse got = client.getItem(asked.build());
      found.put(item, got.hasItem() ? shown(got.item(), wanted) : Shown.ABSENT);
    } catch (ResourceNotFoundException error) {
      Shown unused = found.remove(item);
    }
  }

  private static String attribute(Wanted wanted) {
    return wanted == Wanted.WRITES ? Records.WRITES : Stored.STAMP;
  }

  private static Map<Item, Shown> readSome(DynamoDbClient client, List<Item> items, Wanted wanted) {
    Map<Item, Shown> found = new HashMap<>();
    Map<String, List<Item>> tables = new HashMap<>();
    for (Item item : items) {
      found.put(item, Shown.ABSENT);
      tables.computeIfAbsent(item.table(), absent -> new ArrayList<>()).add(item);
    }
    Map<String, KeysAndAttributes> asked = new HashMap<>();
    tables.forEach((table, some) -> asked.put(table, asked(some, attribute(wanted))));
    for (int round = 0; round < MOST_ROUNDS; round++) {
      BatchGetItemResponse told = client.batchGetItem(batch -> batch.requestItems(asked));
      told.responses()
          .forEach(
              (table, some) -> {
                List<String> names = Objects.requireNonNull(tables.get(table)).get(0).names();
                for (Map<String, AttributeValue> each : some) {
                  Item item = Item.of(table, each, names);
                  if (item != null) {
                    found.put(item, shown(each, wanted));
                  }
                }
              });
      if (!told.hasUnprocessedKeys() || told.unprocessedKeys().isEmpty()) {
        return found;
      }
      asked.clear();
      asked.putAll(told.unprocessedKeys());
    }
    throw new UnreachableException("the table is throttled: a poll was not answered whole");
  }

  private static KeysAndAttributes asked(List<Item> items, String attribute) {
    Map<String, String> names = new HashMap<>();
    List<String> key = items.get(0).names();
    for (int at = 0; at < key.size(); at++) {
      names.put("#k" + at, key.get(at));
    }
    String projection = "#a," + String.join(",", names.keySet());
    names.put("#a", attribute);
    return KeysAndAttributes.builder()
        .keys(items.stream().map(Item::wire).toList())
        .consistentRead(true)
        .projectionExpression(projection)
        .expressionAttributeNames(names)
        .build();
  }

  private static Shown shown(Map<String, AttributeValue> item, Wanted wanted) {
    if (wanted == Wanted.WRITES) {
      @Nullable AttributeValue writes = item.get(Records.WRITES);
      return new Shown(true, null, "", writes == null || writes.s() == null ? "" : writes.s());
    }
    Long stamp = Stored.stampOf(item);
    boolean isDigested = stamp == null && wanted == Wanted.WHOLE;
    return new Shown(true, stamp, isDigested ? Stored.digest(item) : "", "");
  }
}
