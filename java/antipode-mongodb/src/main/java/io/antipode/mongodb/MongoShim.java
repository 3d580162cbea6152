package io.antipode.mongodb;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.MongoExecutionTimeoutException;
import com.mongodb.MongoInterruptedException;
import com.mongodb.MongoOperationTimeoutException;
import com.mongodb.MongoSocketReadTimeoutException;
import com.mongodb.ReadConcernLevel;
import com.mongodb.ReadPreference;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.connection.ClusterConnectionMode;
import com.mongodb.connection.ClusterSettings;
import com.mongodb.connection.ServerSettings;
import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.ReadBarriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PoolWait;
import io.antipode.barrier.PromiseAbandonedException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.bson.BsonDocument;
import org.bson.BsonDocumentReader;
import org.bson.BsonNull;
import org.bson.BsonString;
import org.bson.BsonTimestamp;
import org.bson.BsonValue;
import org.bson.Document;
import org.bson.codecs.DecoderContext;
import org.bson.codecs.configuration.CodecRegistry;
import org.jspecify.annotations.Nullable;

/**
 * One collection of a replica set as one process sees it: values with their stored lineage, waits,
 * promises. What is written here is read by the shims of other languages, and the reverse.
 */
public final class MongoShim extends Shim {
  /** The longest that a server may hold one read back. */
  private static final Duration SLICE = Duration.ofSeconds(1);

  /** How soon the client asks again for a server that does not answer. */
  private static final Duration AGAIN = Duration.ofMillis(50);

  private final MongoClientSettings settings;
  private final String database;
  private final String collection;
  private final String field;
  private final String promises;
  private final @Nullable ReadBarriers barriers;
  private final boolean isMajority;
  private final LogHistory history = new LogHistory();
  private final Look look;
  private final Numbers numbers = new Numbers();
  private final AtomicInteger deletions = new AtomicInteger();
  private final Object lock = new Object();
  private final List<Members> members = new ArrayList<>();
  private @Nullable Link opened;
  private boolean isClosed;

  /** The name of the replica set, which replies do not have; empty until it was asked for. */
  private volatile String setName = "";

  /**
   * What a read found.
   *
   * @param value as the driver decodes it in a {@link Document}; null where there is none
   * @param lineage what it depends on
   */
  public record Found(@Nullable Object value, Lineage lineage) {}

  private MongoShim(Builder builder) {
    super(builder);
    this.settings = checked(builder.settings);
    this.database = builder.database;
    this.collection = builder.collection;
    this.field = builder.field;
    this.promises = builder.promises == null ? builder.database : builder.promises;
    this.barriers = builder.barriers;
    this.isMajority = settings.getReadConcern().getLevel() == ReadConcernLevel.MAJORITY;
    this.look = new Look(history, isMajority);
  }

  private static MongoClientSettings checked(MongoClientSettings settings) {
    if (!settings.getWriteConcern().isAcknowledged()) {
      throw new ConfigurationException(
          "writes that are not acknowledged have no positions: do not set w=0");
    }
    ReadConcernLevel level = settings.getReadConcern().getLevel();
    if (level != null && level != ReadConcernLevel.LOCAL && level != ReadConcernLevel.MAJORITY) {
      throw new ConfigurationException(
          "the read concern '"
              + level.getValue()
              + "' cannot wait for a position: use 'local' or 'majority'");
    }
    return settings;
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param url of the replica set, or with {@code directConnection=true} of one of its members; its
   *     concerns and preferences hold
   * @param database and {@code collection}: where the values are
   * @throws IllegalArgumentException if the URL is none
   */
  public static Builder builder(String datastore, String url, String database, String collection) {
    MongoClientSettings settings =
        MongoClientSettings.builder().applyConnectionString(new ConnectionString(url)).build();
    return new Builder(datastore, settings, database, collection);
  }

  /** Returns a builder of a shim whose client is made of settings; as from a URL otherwise. */
  public static Builder builder(
      String datastore, MongoClientSettings settings, String database, String collection) {
    return new Builder(datastore, settings, database, collection);
  }

  /**
   * Describes a shim; one whose writes are not acknowledged, or whose reads cannot wait, cannot be
   * registered.
   */
  public static final class Builder extends ShimBuilder<Builder, MongoShim> {
    private final MongoClientSettings settings;
    private final String database;
    private final String collection;
    private String field = "value";
    private @Nullable String promises;
    private @Nullable ReadBarriers barriers;

    private Builder(
        String datastore, MongoClientSettings settings, String database, String collection) {
      super(datastore);
      this.settings = Objects.requireNonNull(settings, "settings");
      this.database = Objects.requireNonNull(database, "database");
      this.collection = Objects.requireNonNull(collection, "collection");
    }

    /** Names the field of documents in which values are; {@code value} by default. */
    public Builder field(String field) {
      if (field.isEmpty()
          || field.contains(".")
          || field.startsWith("$")
          || field.equals("_id")
          || field.equals(Beside.FIELD)) {
        throw new ConfigurationException(
            "the field must have a plain name other than '_id' and '_ap', not '" + field + "'");
      }
      this.field = field;
      return this;
    }

    /** Names the database of promises, alike in every service; by default that of the values. */
    public Builder promiseDatabase(String database) {
      this.promises = database;
      return this;
    }

    /** Lets reads wait automatically, or not, whatever is configured. */
    public Builder barriers(ReadBarriers barriers) {
      this.barriers = barriers;
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected MongoShim build() {
      return new MongoShim(this);
    }
  }

  /**
   * Returns the commands that prepare a database for promises, for whoever runs migrations: they
   * make the index by which records go whose time is over. The library runs none.
   */
  public static List<BsonDocument> ddl() {
    return Records.ddl();
  }

  // What it is to barriers.

  @Override
  public boolean canPoll() {
    return settings.getClusterSettings().getMode() == ClusterConnectionMode.SINGLE
        || readsFrom() == ReadsFrom.PRIMARY;
  }

  @Override
  public boolean holdsReads() {
    return true;
  }

  @Override
  public @Nullable ReadBarriers barriers() {
    return barriers;
  }

  @Override
  public boolean canFence() {
    return readsFrom() == ReadsFrom.PRIMARY;
  }

  @Override
  public boolean pollsForPromises() {
    return true;
  }

  @Override
  public boolean canAbandon() {
    return readsFrom() == ReadsFrom.PRIMARY;
  }

  @Override
  public @Nullable Object server() {
    ClusterSettings cluster = settings.getClusterSettings();
    String srv = cluster.getSrvHost();
    String hosts = srv == null ? new HashSet<>(cluster.getHosts()).toString() : srv;
    return canPoll() ? cluster.getMode() + " " + hosts : null;
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) {
    return new MongoEndpoint(link(), look, readsFrom(), promises, isMajority);
  }

  @Override
  public Set<WriteId> fence(Duration timeout) {
    try {
      ServerState state = link().within(timeout).helloPrimary();
      if (!state.isPrimary()) {
        throw new UnreachableException("the server of " + datastore() + " is not primary now");
      }
      if (setName.isEmpty()) {
        setName = state.setName();
      }
      return Set.of(named(Positions.local(state, state.setName(), null)).asCovering());
    } catch (MongoException error) {
      throw Errors.lasting(error);
    }
  }

  @Override
  public boolean abandon(Promise promise, Duration timeout) {
    return Records.abandon(link().within(timeout), promises, promise, recordLife(promise));
  }

  // Clients of the application's.

  /**
   * Returns a client of the synchronous driver, made of settings: the application's to use, and to
   * close. Its writes enter the current scope, each with its position, those of a transaction at
   * the commit; its reads wait for floors on the server that answers them. All that comes from it
   * is instrumented: databases, collections, cursors, sessions.
   *
   * @param settings of the same replica set as this shim
   */
  public MongoClient instrument(MongoClientSettings settings) {
    if (KillSwitch.isDisabled()) {
      return MongoClients.create(settings);
    }
    MongoClientSettings.Builder prepared = MongoClientSettings.builder(settings);
    MongoInstrumentation instrumentation = MongoInstrumentation.prepare(this, prepared);
    return instrumentation.instrument(MongoClients.create(prepared.build()));
  }

  boolean isMajority() {
    return isMajority;
  }

  /** Returns connections next to those of a client, until this shim is closed. */
  Members members(MongoClientSettings client) {
    synchronized (lock) {
      requireOpen();
      Members made = new Members(client);
      members.add(made);
      return made;
    }
  }

  /** Returns what one server shows of what a floor demands, to reads of either concern. */
  Observation look(Link server, Floor floor, boolean isMajorityRead) {
    try {
      Observation.Builder shown =
          new Look(history, isMajorityRead).at(server.hello(), floor.writes(), server);
      if (!floor.promises().isEmpty()) {
        BsonDocument search = Records.search(floor.promises(), isMajorityRead);
        Records.read(server.read(promises, search), floor.promises()).forEach(shown::promise);
      }
      return shown.build();
    } catch (MongoException error) {
      throw Errors.lasting(Records.explained(error, promises));
    }
  }

  // Table 2.

  /**
   * Sets the document of a key to a value, with the current lineage, in one round trip.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws MongoException as {@link #write(Object, Object, Lineage, Promise)}
   */
  public Lineage write(Object key, Object value) {
    return write(key, value, Antipode.current(), null);
  }

  /**
   * Sets the document of a key to a value, with a lineage, in one round trip; in a transaction
   * where it fulfils a promise. Whatever else was in the document goes.
   *
   * @param key its {@code _id}, and {@code value}: what the driver can encode in a {@link Document}
   * @param lineage what the value depends on
   * @param fulfils a promise that this write fulfils, in the same transaction; null for none
   * @return the lineage with this write, which enters the current scope as well
   * @throws PromiseAbandonedException if the promise was given up; nothing is written
   * @throws ConfigurationException if the server is a mongos, or no member of a replica set
   * @throws MongoException as the driver does; without an acknowledgement the scope becomes
   *     incomplete. It is not repeated, but as {@code withTransaction} does
   */
  public Lineage write(Object key, Object value, Lineage lineage, @Nullable Promise fulfils) {
    Recording.recordStored(null);
    BsonValue id = encoded(key);
    BsonValue stored = encoded(value);
    BsonDocument document =
        Bson.doc("_id", id, field, stored, Beside.FIELD, Beside.whole(stored, lineage));
    BsonDocument update = Bson.doc("q", Bson.doc("_id", id), "u", document, "upsert", true);
    BsonDocument command = Bson.doc("update", collection, "updates", Bson.list(update));
    return fulfils == null ? send(command, lineage) : keep(command, lineage, fulfils);
  }

  /**
   * Deletes the document of a key; a tombstone keeps the lineage for who finds nothing. Two round
   * trips.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws MongoException as {@link #write(Object, Object, Lineage, Promise)}
   */
  public Lineage delete(Object key, Lineage lineage) {
    Recording.recordStored(null);
    BsonValue id = encoded(key);
    BsonDocument added = Beside.added(lineage, numbers.of(lineage));
    Lineage unused =
        send(Tombstones.bury(collection, id, deletions.getAndIncrement(), added), lineage);
    BsonDocument delete = Bson.doc("q", Bson.doc("_id", id), "limit", 1);
    return send(Bson.doc("delete", collection, "deletes", Bson.list(delete)), lineage);
  }

  private BsonValue encoded(Object value) {
    return Objects.requireNonNull(
        new Document("v", value).toBsonDocument(BsonDocument.class, codecs()).get("v"));
  }

  private CodecRegistry codecs() {
    return link().client().getDatabase(database).getCodecRegistry();
  }

  private Lineage send(BsonDocument command, Lineage base) {
    Link link = link();
    learnSet(link);
    WriteConcern concern = settings.getWriteConcern();
    if (!concern.isServerDefault()) {
      command.append("writeConcern", concern.asDocument());
    }
    BsonDocument reply;
    try {
      reply = accepted(link, link.write(database, ServerState.asking(command)));
    } catch (RuntimeException error) {
      if (Errors.leavesDoubt(error)) {
        Recording.markIncomplete(datastore(), "in_doubt");
      }
      throw error;
    }
    return written(link, reply, base);
  }

  /** Returns a reply to a write that the server did not refuse. */
  private static BsonDocument accepted(Link link, BsonDocument reply) {
    List<BsonDocument> refused = Bson.docsAt(reply, "writeErrors");
    if (!refused.isEmpty()) {
      throw Errors.refused(refused.get(0), link.primary());
    }
    return reply;
  }

  private Lineage written(Link link, BsonDocument reply, Lineage base) {
    boolean isUnmet = reply.containsKey("writeConcernError");
    Positions.@Nullable Position position =
        Positions.ofWrite(
            Positions.Told.of(reply, setName), setName, isMajorityWrite() && !isUnmet);
    Lineage written = enter(position, base);
    if (isUnmet) { // It is done at the primary; that is all that is known of it.
      throw Errors.unmet(Bson.docAt(reply, "writeConcernError"), link.primary());
    }
    return written;
  }

  private boolean isMajorityWrite() {
    return "majority".equals(settings.getWriteConcern().getWObject());
  }

  /** Enters a write that was committed; null for a position that nobody reports. */
  private Lineage enter(Positions.@Nullable Position position, Lineage base) {
    if (position != null) {
      WriteId write = named(position);
      Recording.recordWrite(write);
      return base.append(write);
    }
    unsampled();
    return base.marked(new Incomplete(datastore(), "unsampled"));
  }

  /** Notes a write that has no position. */
  void unsampled() {
    countUncovered("mongodb", "the reply has none");
    Recording.markIncomplete(datastore(), "unsampled");
  }

  WriteId named(Positions.Position position) {
    return WriteId.of(datastore(), position.key(), position.version()).writtenAt(Time.hour());
  }

  // Promises.

  /** A transaction, and how far it came. */
  private static final class Attempt {
    private BsonDocument told = new BsonDocument();
    private boolean isWritten;
  }

  /** Writes in a transaction that fulfils a promise. */
  private Lineage keep(BsonDocument command, Lineage base, Promise promise) {
    Link link = link();
    learnSet(link);
    BsonDocument asking = ServerState.asking(command);
    TransactionOptions options =
        TransactionOptions.builder()
            .readPreference(ReadPreference.primary())
            .writeConcern(settings.getWriteConcern())
            .build();
    Attempt attempt = new Attempt();
    try (ClientSession session = link.client().startSession()) {
      try {
        attempt.told =
            session.withTransaction(
                () -> {
                  attempt.isWritten = false;
                  fulfil(link.database(promises), session, promise);
                  BsonDocument told =
                      accepted(
                          link,
                          link.database(database).runCommand(session, asking, BsonDocument.class));
                  attempt.isWritten = true;
                  return told;
                },
                options);
      } catch (RuntimeException error) {
        boolean isUndone =
            error instanceof MongoException failed
                && failed.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL);
        if (attempt.isWritten && !isUndone) { // It was the commit.
          Recording.markIncomplete(datastore(), "in_doubt");
        }
        throw error;
      }
      return enter(committed(link, attempt.told, session.getOperationTime()), base);
    }
  }

  /**
   * Returns the position of a transaction, whose commit has a timestamp alone: its term is that of
   * the primary which took the write, if it is the same after the commit.
   */
  private Positions.@Nullable Position committed(
      Link link, BsonDocument told, @Nullable BsonTimestamp operation) {
    if (operation == null) {
      return null;
    }
    if (isMajorityWrite()) {
      return new Positions.Position(setName, operation.getValue());
    }
    ServerState before = ServerState.ofReply(told, setName);
    ServerState after;
    try {
      after = link.helloPrimary();
    } catch (MongoException | UnreachableException error) {
      return null;
    }
    boolean isSame =
        before != null
            && before.isPrimary()
            && after.isPrimary()
            && before.applied().term() == after.applied().term();
    return isSame
        ? new Positions.Position(
            Positions.key(setName, after.applied().term()), operation.getValue())
        : null;
  }

  /**
   * Records, in the open transaction of a session of the application's, that a promise is
   * fulfilled: with its commit the record becomes visible together with its data, and an abort
   * takes it along. One round trip.
   *
   * @param database where clients ask for promises, of the client whose session it is
   * @throws PromiseAbandonedException if the promise was given up; the server has aborted the
   *     transaction
   * @throws ConfigurationException if no transaction is open, or clients ask elsewhere
   * @throws MongoException as the driver does; with the label that {@code withTransaction} repeats
   *     where another transaction writes the record now
   */
  public void fulfil(MongoDatabase database, ClientSession session, Promise promise) {
    if (!session.hasActiveTransaction()) {
      throw new ConfigurationException(
          "the session is in no transaction: the promise would be fulfilled without its data;"
              + " write and fulfil it in withTransaction()");
    }
    if (!promise.datastore().equals(datastore()) || !database.getName().equals(promises)) {
      throw new ConfigurationException(
          promise
              + " would be recorded in "
              + database.getName()
              + ", where nobody asks for it: clients of "
              + datastore()
              + " ask in "
              + promises);
    }
    MongoCollection<Document> records = database.getCollection(Records.COLLECTION);
    try {
      Object unused =
          records.updateOne(
              session,
              Records.filter(promise, true),
              Records.recording(recordLife(promise)),
              new UpdateOptions().upsert(true));
    } catch (MongoException error) {
      if (error.getCode() == Errors.DUPLICATE && isAbandoned(records, promise)) {
        throw new PromiseAbandonedException(promise);
      }
      throw error;
    }
  }

  private static boolean isAbandoned(MongoCollection<Document> records, Promise promise) {
    Document record =
        records
            .withReadPreference(ReadPreference.primary())
            .find(Bson.doc("_id", promise.id()))
            .first();
    return record != null && !Boolean.TRUE.equals(record.get("fulfilled"));
  }

  // Reads.

  /** A document, what was deleted before it, and the last reply. */
  private record Answer(@Nullable BsonDocument document, Lineage dead, BsonDocument reply) {}

  /**
   * Promises that have a record, as some server showed.
   *
   * @param covering what another server has to show before the records show there, too
   */
  private record Kept(Map<Promise, Status> statuses, List<WriteId> covering) {}

  /** A read under a floor. */
  private static final class Held {
    private @Nullable Answer answer;
    private Kept kept = new Kept(Map.of(), List.of());
  }

  /**
   * Returns the value of a key, and what it depends on: its stored lineage, and a covering
   * position. It enters the current scope. One round trip, two where there is no document. Under a
   * floor the server holds the read back until that is met.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws MongoException as the driver does
   */
  public Found read(Object key) {
    BsonValue id = encoded(key);
    StaleRead stale = new StaleRead();
    @Nullable Floor floor = Floor.current(this, null, stale);
    Link link = link();
    learnSet(link, floor);
    Held held = new Held();
    if (floor != null) {
      awaitFirst();
      hold(floor, null, most -> held(floor, id, held, most));
    }
    Found found = found(held.answer == null ? find(link, id, null) : held.answer);
    stale.answered();
    return found;
  }

  /** Waits where no connection of the pool is kept; the read itself decides. */
  private void awaitFirst() {
    try {
      PoolWait.await(this);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw interrupted(datastore(), error);
    }
  }

  /**
   * Returns what will be found by {@link #read}, in the current scope.
   *
   * @param executor whose threads read, and wait while the read is held back
   */
  public CompletableFuture<Found> readAsync(Object key, Executor executor) {
    return inScope(() -> read(key), executor);
  }

  /** Returns the driver's own error, where there is one. */
  static RuntimeException own(UnreachableException error) {
    return error.getCause() instanceof MongoException own ? own : error;
  }

  static MongoInterruptedException interrupted(String datastore, InterruptedException error) {
    return new MongoInterruptedException("a read of " + datastore + " was held back", error);
  }

  /**
   * Holds a read back until its floor is met.
   *
   * @param places of the pool whose connection it keeps; null for the library's own
   * @throws MongoException as the driver does, where the server could not be asked
   */
  void hold(Floor floor, @Nullable Places places, Floor.Look look) {
    try {
      floor.hold(this, places, look);
    } catch (UnreachableException error) {
      throw own(error);
    } catch (RuntimeException error) {
      throw error;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw interrupted(datastore(), error);
    } catch (Exception impossible) { // A poll throws no others.
      throw new IllegalStateException(impossible);
    }
  }

  /**
   * Reads where and when a floor is met, and returns what the server showed at the read. The read
   * carries the wait. Promises are asked for first; the server that reads then has to show what
   * covers their records.
   */
  private Observation held(Floor floor, BsonValue key, Held held, Duration most) {
    Link link = link().within(most.compareTo(SLICE) < 0 ? most : SLICE);
    held.answer = null;
    Set<WriteId> writes = new HashSet<>(floor.writes());
    try {
      if (held.kept.statuses.size() < floor.promises().size()) {
        Kept kept = records(link, floor.promises());
        if (!floor.promises().stream().allMatch(each -> isVisible(kept, each))) {
          Observation.Builder shown = Observation.of("");
          kept.statuses.forEach(shown::promise);
          return shown.build();
        }
        held.kept = kept;
      }
      writes.addAll(held.kept.covering);
      if (floor.blockTimeout(SLICE).isZero()) { // The server has no time to hold it back.
        Observation shown = look.at(link.hello(), writes, link).build();
        if (!areVisible(shown, writes)) {
          return shown;
        }
      }
      Answer answer = find(link, key, after(writes));
      ServerState state = ServerState.ofReply(answer.reply, setName);
      Observation.Builder shown = look.at(state == null ? link.hello() : state, writes, link);
      held.answer = answer;
      if (areVisible(shown.build(), held.kept.covering)) {
        held.kept.statuses.forEach(shown::promise);
      }
      return shown.build();
    } catch (MongoException error) {
      return unread(link, writes, error);
    }
  }

  private static boolean isVisible(Kept kept, Promise promise) {
    return kept.statuses.get(promise) == Status.VISIBLE;
  }

  private static boolean areVisible(Observation shown, Collection<WriteId> writes) {
    return writes.stream().allMatch(each -> shown.status(each) == Status.VISIBLE);
  }

  /** Returns what a read shows that was not answered. */
  private Observation unread(Link link, Set<WriteId> writes, MongoException error) {
    if (error.getCode() == Errors.UNHEARD) {
      // What this proves about the past holds; what it showed must be read.
      try {
        Observation shown = look.at(link.hello(), writes, link).build();
        return shown.with(Status.VISIBLE, Status.NOT_YET);
      } catch (MongoException again) {
        throw Errors.lasting(again);
      }
    }
    boolean isLate =
        error instanceof MongoOperationTimeoutException
            || error instanceof MongoExecutionTimeoutException
            || error instanceof MongoSocketReadTimeoutException;
    if (!isLate) {
      throw Errors.lasting(error);
    }
    Observation.Builder late = Observation.of("");
    writes.forEach(each -> late.write(each, Status.NOT_YET, String.valueOf(error.getMessage())));
    return late.build();
  }

  private Kept records(Link link, List<Promise> wanted) {
    BsonDocument search = ServerState.asking(Records.search(wanted, isMajority));
    BsonDocument reply;
    try {
      reply = link.read(promises, search);
    } catch (MongoException error) {
      throw Records.explained(error, promises);
    }
    Lineage covering = covering(reply);
    return covering.incomplete().isEmpty()
        ? new Kept(Records.read(reply, wanted), covering.writes())
        : new Kept(Map.of(), List.of());
  }

  /** Returns the time that a read needs which is to show writes; null for none. */
  private @Nullable BsonTimestamp after(Collection<WriteId> writes) {
    return writes.stream()
        .filter(each -> each.opaqueVersion() == null)
        .filter(each -> Positions.term(each.key(), setName).isPresent())
        .map(each -> new BsonTimestamp(each.version()))
        .max(BsonTimestamp::compareTo)
        .orElse(null);
  }

  /**
   * Returns the document of a key, and the lineages of deletions where these are part of it.
   * Tombstones are asked for later, or at the same time, on whatever server answers.
   */
  private Answer find(Link link, BsonValue key, @Nullable BsonTimestamp after) {
    BsonDocument find =
        Bson.doc(
            "find", collection, "filter", Bson.doc("_id", key), "limit", 1, "singleBatch", true);
    BsonDocument reply = answered(link, find, after);
    List<BsonDocument> found = Bson.docsAt(reply, "cursor", "firstBatch");
    @Nullable BsonDocument document = found.isEmpty() ? null : found.get(0);
    @Nullable String birthplace = document == null ? collection : Beside.birthplace(document);
    if (birthplace == null) {
      return new Answer(document, Lineage.empty(), reply);
    }
    // Documents of a view were inserted in its source, maybe with other ids.
    BsonDocument search = Tombstones.search(birthplace, birthplace.equals(collection) ? key : null);
    Long now = Bson.stampAt(reply, "operationTime");
    BsonDocument dead = answered(link, search, now == null ? after : new BsonTimestamp(now));
    return new Answer(document, Tombstones.lineage(dead, datastore()), dead);
  }

  private BsonDocument answered(Link link, BsonDocument find, @Nullable BsonTimestamp after) {
    BsonDocument concern = new BsonDocument();
    if (isMajority) {
      concern.append("level", new BsonString("majority"));
    }
    if (after != null) {
      concern.append("afterClusterTime", after);
    }
    if (!concern.isEmpty()) {
      find.append("readConcern", concern);
    }
    return link.read(database, ServerState.asking(find));
  }

  private Found found(Answer answer) {
    Lineage lineage = answer.dead;
    @Nullable Object value = null;
    if (answer.document != null) {
      BsonValue held = answer.document.getOrDefault(field, BsonNull.VALUE);
      Beside.Stored stored = Beside.found(held, answer.document.get(Beside.FIELD), datastore());
      if (stored.match() == Beside.Match.COMPANION_ABSENT
          || stored.match() == Beside.Match.FOREIGN) {
        Counts.count(stored.match().metric(), datastore());
      }
      lineage = lineage.merge(stored.lineage());
      value = decoded(held);
    }
    lineage = lineage.merge(covering(answer.reply));
    recordRead(lineage);
    return new Found(value, lineage);
  }

  private @Nullable Object decoded(BsonValue value) {
    BsonDocumentReader reader = new BsonDocumentReader(Bson.doc("v", value));
    return codecs().get(Document.class).decode(reader, DecoderContext.builder().build()).get("v");
  }

  private Lineage covering(BsonDocument reply) {
    Positions.@Nullable Position position =
        Positions.ofRead(Positions.Told.of(reply, setName), setName, isMajority);
    if (position == null) {
      Counts.count("unsampled_read", datastore());
      return Lineage.empty().marked(new Incomplete(datastore(), "unsampled"));
    }
    return Lineage.of(named(position).asCovering());
  }

  // The client.

  /** Returns the name of its replica set; empty where it is not known yet. */
  String setName() {
    return setName;
  }

  private void learnSet(Link link) {
    if (setName.isEmpty()) {
      setName = link.hello().setName();
    }
  }

  private void learnSet(Link link, @Nullable Floor floor) {
    if (floor == null) {
      learnSet(link);
      return;
    }
    try {
      learnSet(link.within(floor.pollTimeout()));
    } catch (MongoException error) {
      if (Errors.isPassing(error)) {
        floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      }
      throw error;
    }
  }

  private Link link() {
    synchronized (lock) {
      requireOpen();
      if (opened == null) {
        opened = new Link(MongoClients.create(alert()), settings.getReadPreference(), null);
      }
      return opened;
    }
  }

  private void requireOpen() {
    if (isClosed) {
      throw new IllegalStateException("the shim of " + datastore() + " is closed");
    }
  }

  /** Returns settings of a client that soon sees that a server is back: a barrier waits for it. */
  private MongoClientSettings alert() {
    return MongoClientSettings.builder(settings)
        .applyToServerSettings(MongoShim::soonSeesServers)
        .build();
  }

  static void soonSeesServers(ServerSettings.Builder server) {
    ServerSettings.Builder unused =
        server.minHeartbeatFrequency(AGAIN.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** Unregisters, and releases every connection of the shim's own; may be called again. */
  @Override
  public void close() {
    super.close();
    synchronized (lock) {
      isClosed = true;
      if (opened != null) {
        opened.client().close();
        opened = null;
      }
      members.forEach(Members::close);
      members.clear();
    }
  }
}
