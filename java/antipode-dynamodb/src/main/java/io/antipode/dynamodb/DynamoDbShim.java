package io.antipode.dynamodb;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.aws.Attempts;
import io.antipode.aws.AwsCall;
import io.antipode.aws.RegionShim;
import io.antipode.barrier.StaleRead;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Time;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClientBuilder;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClientBuilder;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.DeleteItemRequest;
import software.amazon.awssdk.services.dynamodb.model.DeleteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.GetItemRequest;
import software.amazon.awssdk.services.dynamodb.model.GetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.KeySchemaElement;
import software.amazon.awssdk.services.dynamodb.model.Put;
import software.amazon.awssdk.services.dynamodb.model.PutItemResponse;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItemsResponse;

/**
 * One region of global tables, or of tables that are in one region alone, as one process sees it:
 * values with their stored lineage, and waits. What is written here is read by the shims of other
 * languages, and the reverse.
 */
public final class DynamoDbShim extends RegionShim {
  private final DynamoDbClient client;
  private final Writes writes;
  private final @Nullable String table;
  private final String key;
  private final String field;
  private final String promiseTable;

  /**
   * What a read found.
   *
   * @param value null where there is none
   * @param lineage what it depends on
   */
  public record Found(@Nullable AttributeValue value, Lineage lineage) {}

  private DynamoDbShim(Builder builder, DynamoDbClient client, DynamoDbRegions regions) {
    super(builder, "dynamodb", regions);
    this.client = client;
    this.writes = new Writes(builder.keys);
    this.table = builder.table;
    this.key = builder.key;
    this.field = builder.field;
    this.promiseTable = builder.promiseTable;
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param client which makes the client of Table 2, and says how this region is reached: with its
   *     region, its credentials and, where it has one, its endpoint
   */
  public static Builder builder(String datastore, DynamoDbClientBuilder client) {
    return new Builder(datastore, client);
  }

  /** Describes a shim; one whose names cannot work cannot be registered. */
  public static final class Builder extends RegionShim.Builder<Builder, DynamoDbShim> {
    private final DynamoDbClientBuilder client;
    private final Map<String, List<String>> keys = new HashMap<>();
    private @Nullable String table;
    private String key = "id";
    private String field = "value";
    private String promiseTable = Records.TABLE;

    private Builder(String datastore, DynamoDbClientBuilder client) {
      super(datastore);
      this.client = Objects.requireNonNull(client, "client");
    }

    /** Names the table of Table 2, which has no sort key. */
    public Builder table(String table) {
      this.table = Objects.requireNonNull(table, "table");
      return this;
    }

    /** Names its partition key, of type {@code S}; {@code id} by default. */
    public Builder key(String key) {
      this.key = Objects.requireNonNull(key, "key");
      return this;
    }

    /** Names the attribute of items in which values are; {@code value} by default. */
    public Builder field(String field) {
      this.field = Objects.requireNonNull(field, "field");
      return this;
    }

    /**
     * Names the table of promises, alike in every service and region; {@code antipode_promises} by
     * default. Its partition key is the string {@code id}, its attribute for the time to live
     * {@code until}.
     */
    public Builder promiseTable(String table) {
      this.promiseTable = Objects.requireNonNull(table, "table");
      return this;
    }

    /** Names the attributes of a table's key, where {@code DescribeTable} is not allowed. */
    public Builder tableKey(String table, String... attributes) {
      keys.put(table, List.of(attributes));
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected DynamoDbShim build() {
      if (key.isEmpty()
          || field.isEmpty()
          || key.equals(field)
          || Stored.OURS.contains(key)
          || Stored.OURS.contains(field)) {
        throw new ConfigurationException(
            "key and field must be two names other than '_ap' and '_apl'");
      }
      DynamoDbClient own = built(client, new Attempts.Counting());
      return new DynamoDbShim(
          this,
          own,
          new DynamoDbRegions(own.serviceClientConfiguration(), regions(), promiseTable));
    }
  }

  @Override
  public boolean pollsForPromises() {
    return true;
  }

  // Clients of the application's.

  /**
   * Returns the client that a builder makes: the application's to use, and to close. Its writes
   * enter the current scope, and its reads wait for floors, whatever is made of it: paginators,
   * waiters, the enhanced client. A write sets the attribute {@code _ap} of its item, in no further
   * request, which its own replies do not show.
   *
   * @param builder of a client of this shim's region
   * @throws ConfigurationException if it is of another region
   */
  public DynamoDbClient instrument(DynamoDbClientBuilder builder) {
    return instrumented(builder);
  }

  /**
   * Returns an asynchronous client, as {@link #instrument(DynamoDbClientBuilder)} does. No thread
   * of the application's waits; a write whose future is cancelled marks the lineage.
   *
   * @param builder of a client of this shim's region
   * @throws ConfigurationException if it is of another region
   */
  public DynamoDbAsyncClient instrument(DynamoDbAsyncClientBuilder builder) {
    return instrumentedAsync(DynamoDbAsyncClient.class, builder);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   *
   * @throws ConfigurationException if it is of another region
   */
  public DynamoDbClient instrument(DynamoDbClient made) {
    return around(DynamoDbClient.class, made);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   *
   * @throws ConfigurationException if it is of another region
   */
  public DynamoDbAsyncClient instrument(DynamoDbAsyncClient made) {
    return aroundAsync(DynamoDbAsyncClient.class, made);
  }

  @Override
  protected AwsCall call(String operation, SdkRequest request, @Nullable AwsCall whole) {
    return new Call(this, operation, request);
  }

  Writes writes() {
    return writes;
  }

  /** Asks for the key of a table, once, with the time and the retries of the application's. */
  void learnKey(String name) {
    List<KeySchemaElement> key =
        client.describeTable(asked -> asked.tableName(name)).table().keySchema();
    writes.learn(name, key.stream().map(KeySchemaElement::attributeName).toList());
  }

  /** Returns a stamp for a write that depends on a lineage: later than what it saw. */
  long stamp(Lineage lineage, boolean isDeletion) {
    long seen =
        lineage.only(datastore()).writes().stream()
            .filter(each -> each.opaqueVersion() == null)
            .mapToLong(WriteId::version)
            .max()
            .orElse(0);
    return Stamps.OF_PROCESS.next(isDeletion, seen);
  }

  /** Returns the write of an item that has a stamp. */
  WriteId written(Item item, long stamp) {
    return WriteId.of(datastore(), item.named(region()), stamp).writtenAt(Time.hour());
  }

  // Table 2.

  /**
   * Puts the item of a key with a value and the current lineage, in one request.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws software.amazon.awssdk.core.exception.SdkException as {@link #write(String,
   *     AttributeValue, Lineage)}
   */
  public Lineage write(String id, AttributeValue value) {
    return write(id, value, Antipode.current());
  }

  /**
   * Puts the item of a key with a value and a lineage, in one request. Whatever else was in the
   * item goes.
   *
   * @param id the value of the partition key
   * @param lineage what the value depends on
   * @return the lineage with this write, which enters the current scope as well
   * @throws software.amazon.awssdk.core.exception.SdkException as the SDK does; without an answer
   *     the scope becomes incomplete
   */
  public Lineage write(String id, AttributeValue value, Lineage lineage) {
    return write(id, value, lineage, null);
  }

  /**
   * Puts the item of a key with a value and a lineage, in one request: a transaction where it
   * fulfils a promise. Whatever else was in the item goes.
   *
   * @param id the value of the partition key
   * @param lineage what the value depends on
   * @param fulfils a promise that this write fulfils, in the same transaction; null for none
   * @return the lineage with this write, which enters the current scope as well
   * @throws software.amazon.awssdk.core.exception.SdkException as {@link #write(String,
   *     AttributeValue, Lineage)}
   */
  public Lineage write(
      String id, AttributeValue value, Lineage lineage, @Nullable Promise fulfils) {
    Item item = item(id);
    long stamp = stamp(lineage.merge(Antipode.current()), false);
    Map<String, AttributeValue> stored = item.wire();
    stored.put(field, value);
    stored.put(Stored.STAMP, Stored.stamp(stamp));
    Recording.recordStored(null);
    String text = LineageText.stored(lineage);
    if (!text.isEmpty()) {
      stored.put(Stored.LINEAGE, AttributeValue.fromS(text));
    }
    WriteId write = written(item, stamp);
    Attempts attempts = new Attempts(fulfils != null);
    Consumer<AwsRequestOverrideConfiguration.Builder> options =
        each -> each.putExecutionAttribute(Attempts.key(), attempts);
    if (fulfils == null) {
      return done(
          attempts,
          () -> {
            PutItemResponse unused =
                client.putItem(
                    put -> put.tableName(item.table()).item(stored).overrideConfiguration(options));
          },
          write,
          lineage);
    }
    Put record = Records.naming(record(fulfils), List.of(write));
    List<TransactWriteItem> both =
        List.of(action(Put.builder().tableName(item.table()).item(stored).build()), action(record));
    return done(
        attempts,
        () -> {
          TransactWriteItemsResponse unused =
              client.transactWriteItems(
                  all -> all.transactItems(both).overrideConfiguration(options));
        },
        write,
        lineage);
  }

  /**
   * Returns the actions of a {@code TransactWriteItems} with one more, by which they fulfil a
   * promise. For instrumented clients, which note in it what the transaction writes:
   *
   * <pre>{@code
   * client.transactWriteItems(all -> all.transactItems(shim.fulfil(actions, promise)));
   * }</pre>
   *
   * @param actions what the transaction writes
   */
  public List<TransactWriteItem> fulfil(Collection<TransactWriteItem> actions, Promise promise) {
    List<TransactWriteItem> all = new ArrayList<>(actions);
    all.add(action(record(promise)));
    return all;
  }

  private Put record(Promise promise) {
    return Records.fulfilling(promise, recordLife(promise), promiseTable);
  }

  private static TransactWriteItem action(Put put) {
    return TransactWriteItem.builder().put(put).build();
  }

  /**
   * Deletes the item of a key, in one request. Nothing stays: who finds no item depends on nothing.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws software.amazon.awssdk.core.exception.SdkException as {@link #write(String,
   *     AttributeValue, Lineage)}
   */
  public Lineage delete(String id, Lineage lineage) {
    Item item = item(id);
    long stamp = stamp(lineage.merge(Antipode.current()), true);
    Attempts attempts = new Attempts(false);
    DeleteItemRequest request =
        DeleteItemRequest.builder()
            .tableName(item.table())
            .key(item.wire())
            .overrideConfiguration(
                options -> options.putExecutionAttribute(Attempts.key(), attempts))
            .build();
    return done(
        attempts,
        () -> {
          DeleteItemResponse unused = client.deleteItem(request);
        },
        written(item, stamp),
        lineage);
  }

  private Lineage done(Attempts attempts, Runnable call, WriteId write, Lineage lineage) {
    try {
      call.run();
    } catch (RuntimeException error) {
      failed(attempts, error);
      throw error;
    }
    Recording.recordWrite(write);
    return lineage.append(write);
  }

  /**
   * Returns the value of a key, and what it depends on: its stored lineage, and the write that it
   * shows. It enters the current scope. One consistent request; under a floor the read is held back
   * until this region shows that.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws software.amazon.awssdk.core.exception.SdkException as the SDK does
   */
  public Found read(String id) {
    Item item = item(id);
    GetItemRequest request =
        GetItemRequest.builder()
            .tableName(item.table())
            .key(item.wire())
            .consistentRead(true)
            .build();
    StaleRead stale = prepared(request).stale();
    GetItemResponse got = client.getItem(request);
    stale.answered();
    return got.hasItem() ? found(item, got.item()) : new Found(null, Lineage.empty());
  }

  /**
   * Returns what will be found by {@link #read}, in the current scope.
   *
   * @param executor whose threads read, and wait while the read is held back
   */
  public CompletableFuture<Found> readAsync(String id, Executor executor) {
    return inScope(() -> read(id), executor);
  }

  private Found found(Item item, Map<String, AttributeValue> shown) {
    Lineage lineage = Stored.lineageOf(shown, datastore());
    Long stamp = Stored.stampOf(shown);
    if (stamp != null) {
      WriteId write = shown(item, stamp);
      recordShown(write);
      lineage = lineage.append(write);
    }
    recordRead(lineage);
    return new Found(shown.get(field), lineage);
  }

  /** Returns the write that a read showed, by the name that its request knows, if it does. */
  private WriteId shown(Item item, long stamp) {
    String named = item.named("");
    for (WriteId known : Antipode.current().only(datastore()).writes()) {
      if (known.opaqueVersion() == null
          && known.version() == stamp
          && known.key().startsWith(named)) {
        return known;
      }
    }
    return WriteId.of(datastore(), item.named(region()), stamp).writtenAt(Stamps.hour(stamp));
  }

  private Item item(String id) {
    if (table == null) {
      throw new ConfigurationException(
          "the shim of '"
              + datastore()
              + "' writes and reads no values: say DynamoDbShim.Builder.table()");
    }
    return new Item(Item.tableName(table), List.of(new Item.Attribute(key, 'S', id)));
  }

  /** Unregisters, and closes every client of the shim's own; may be called again. */
  @Override
  public void close() {
    super.close();
    client.close();
  }
}
