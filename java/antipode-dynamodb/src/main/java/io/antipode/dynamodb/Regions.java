package io.antipode.dynamodb;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.WriteId;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClientBuilder;
import software.amazon.awssdk.services.dynamodb.DynamoDbServiceClientConfiguration;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchGetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.GetItemRequest;
import software.amazon.awssdk.services.dynamodb.model.GetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.KeysAndAttributes;
import software.amazon.awssdk.services.dynamodb.model.ListTablesResponse;
import software.amazon.awssdk.services.dynamodb.model.ResourceNotFoundException;

/** The library's own clients: one for each region that is asked. Thread-safe. */
final class Regions implements AutoCloseable {
  /** How long one request of the library's own may take. */
  private static final Duration REQUEST = Duration.ofSeconds(1);

  /** For how long a poll that missed something counts for reads whose time is up. */
  private static final Duration RECENT = Duration.ofMillis(50);

  /** How many items one request reads, and how often what was left out is asked for again. */
  private static final int MOST_KEYS = 100;

  private static final int MOST_ROUNDS = 5;

  private final String here;
  private final boolean isAws;
  private final DynamoDbServiceClientConfiguration settings;
  private final Map<String, URI> endpoints;
  private final Homes homes = new Homes();
  private final Map<String, DynamoDbClient> clients = new HashMap<>();
  private boolean isClosed;
  private volatile @Nullable Last last;

  /** What a poll for reads showed, and when. */
  private record Last(long at, Set<WriteId> writes, Observation observation) {}

  /**
   * Takes what the application's client is configured with.
   *
   * @param others where further regions are, if not where AWS has them
   */
  Regions(DynamoDbServiceClientConfiguration settings, Map<String, URI> others) {
    this.here = settings.region().id();
    this.settings = settings;
    this.endpoints = new HashMap<>(others);
    this.isAws = settings.endpointOverride().isEmpty();
    settings.endpointOverride().ifPresent(own -> endpoints.put(here, own));
  }

  String here() {
    return here;
  }

  /** Returns what distinguishes this region from others. */
  String server() {
    return here + " " + endpoints.get(here);
  }

  /**
   * Returns what this region shows of writes.
   *
   * @throws UnreachableException if it was throttled, or could not be reached
   */
  Observation observe(Collection<WriteId> writes) throws Exception {
    try {
      return Look.at(here, writes, homes, this::read);
    } catch (RuntimeException error) {
      throw Errors.lasting(error);
    }
  }

  /**
   * Returns what it shows of what a floor demands; where its time is up, what the last poll showed,
   * if that is recent: reads that are answered stale need not pay for a poll each.
   */
  Observation observe(Floor floor) throws Exception {
    List<WriteId> writes = floor.writes();
    long now = System.nanoTime();
    Last known = last;
    if (known != null
        && floor.blockTimeout(RECENT).isZero()
        && known.writes.equals(Set.copyOf(writes))
        && now - known.at < RECENT.toNanos()) {
      return known.observation;
    }
    Observation shown;
    try {
      shown = observe(writes);
    } catch (UnreachableException error) { // Worth repeating, within the time of the read.
      Observation.Builder away = Observation.of(here);
      String cause = String.valueOf(error.getMessage());
      writes.forEach(each -> away.write(each, Status.NOT_YET, cause));
      return away.build();
    }
    last = new Last(now, Set.copyOf(writes), shown);
    return shown;
  }

  // Reading.

  private Map<Item, Shown> read(String region, Set<Item> items, boolean isWhole) {
    DynamoDbClient client = client(region);
    if (items.isEmpty()) {
      answer(client);
    }
    Map<Item, Shown> found = new HashMap<>();
    if (isWhole || items.size() == 1) {
      items.forEach(each -> readOne(client, each, isWhole, found));
      return found;
    }
    List<Item> all = List.copyOf(items);
    for (int start = 0; start < all.size(); start += MOST_KEYS) {
      List<Item> some = all.subList(start, Math.min(start + MOST_KEYS, all.size()));
      try {
        found.putAll(readSome(client, some));
      } catch (ResourceNotFoundException error) {
        some.forEach(each -> readOne(client, each, false, found));
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
      DynamoDbClient client, Item item, boolean isWhole, Map<Item, Shown> found) {
    GetItemRequest.Builder asked =
        GetItemRequest.builder().tableName(item.table()).key(item.wire()).consistentRead(true);
    if (!isWhole) {
      asked.projectionExpression("#a").expressionAttributeNames(Map.of("#a", Stored.STAMP));
    }
    try {
      GetItemResponse got = client.getItem(asked.build());
      found.put(item, got.hasItem() ? shown(got.item(), isWhole) : Shown.ABSENT);
    } catch (ResourceNotFoundException error) {
      Shown unused = found.remove(item);
    }
  }

  private static Map<Item, Shown> readSome(DynamoDbClient client, List<Item> items) {
    Map<Item, Shown> found = new HashMap<>();
    Map<String, List<Item>> tables = new HashMap<>();
    for (Item item : items) {
      found.put(item, Shown.ABSENT);
      tables.computeIfAbsent(item.table(), absent -> new ArrayList<>()).add(item);
    }
    Map<String, KeysAndAttributes> asked = new HashMap<>();
    tables.forEach((table, some) -> asked.put(table, asked(some)));
    for (int round = 0; round < MOST_ROUNDS; round++) {
      BatchGetItemResponse told = client.batchGetItem(batch -> batch.requestItems(asked));
      told.responses()
          .forEach(
              (table, some) -> {
                List<String> names = Objects.requireNonNull(tables.get(table)).get(0).names();
                for (Map<String, AttributeValue> each : some) {
                  Item item = Item.of(table, each, names);
                  if (item != null) {
                    found.put(item, shown(each, false));
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

  private static KeysAndAttributes asked(List<Item> items) {
    Map<String, String> names = new HashMap<>();
    List<String> key = items.get(0).names();
    for (int at = 0; at < key.size(); at++) {
      names.put("#k" + at, key.get(at));
    }
    String projection = "#a," + String.join(",", names.keySet());
    names.put("#a", Stored.STAMP);
    return KeysAndAttributes.builder()
        .keys(items.stream().map(Item::wire).toList())
        .consistentRead(true)
        .projectionExpression(projection)
        .expressionAttributeNames(names)
        .build();
  }

  private static Shown shown(Map<String, AttributeValue> item, boolean isWhole) {
    Long stamp = Stored.stampOf(item);
    return new Shown(true, stamp, stamp == null && isWhole ? Stored.digest(item) : "");
  }

  // Clients.

  private synchronized DynamoDbClient client(String region) {
    if (isClosed) {
      throw new IllegalStateException("the shim of " + here + " is closed");
    }
    return clients.computeIfAbsent(region, this::connect);
  }

  private DynamoDbClient connect(String region) {
    @Nullable URI endpoint = endpoints.get(region);
    if (endpoint == null && !isAws) {
      throw new ConfigurationException(
          "say where it is: DynamoDbShim.Builder.region(\"" + region + "\", its endpoint)");
    }
    DynamoDbClientBuilder builder =
        DynamoDbClient.builder()
            .region(Region.of(region))
            .credentialsProvider(settings.credentialsProvider())
            .overrideConfiguration(
                options ->
                    options.apiCallTimeout(REQUEST).retryStrategy(AwsRetryStrategy.doNotRetry()));
    if (endpoint != null) {
      builder.endpointOverride(endpoint);
    }
    return builder.build();
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    clients.values().forEach(DynamoDbClient::close);
    clients.clear();
  }
}
