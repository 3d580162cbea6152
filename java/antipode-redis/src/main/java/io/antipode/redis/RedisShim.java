package io.antipode.redis;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.PromiseAbandonedException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.redis.Commands.Kind;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandInterruptedException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SetArgs;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.masterreplica.StatefulRedisMasterReplicaConnection;
import io.lettuce.core.resource.ClientResources;
import java.time.Duration;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One Redis server as one process sees it: strings with their lineage in a companion key, waits,
 * promises. What is written here is read by the shims of other languages, and the reverse.
 */
public final class RedisShim extends Shim {
  /** A replication id is random: no other store has a log of that name. */
  private static final Pattern LOG = Pattern.compile("[0-9a-f]{40}");

  /** How often another record may come first before that is no accident. */
  private static final int FULFILMENTS = 5;

  /** The longest that making a connection may take; the first one of a process takes its time. */
  private static final Duration CONNECT = Duration.ofSeconds(5);

  private final RedisClient client;
  private final RedisURI address;
  private final Duration timeout;
  private final String prefix;
  private final @Nullable ReadBarriers barriers;
  private final @Nullable Supplier<? extends StatefulRedisConnection<?, ?>> primary;
  private final boolean keepsLogHistory;
  private final LogHistory history = new LogHistory();
  private final Deque<Link> idle = new ConcurrentLinkedDeque<>();
  private final Set<String> noted = ConcurrentHashMap.newKeySet();
  private volatile boolean isClosed;

  /**
   * What a read found.
   *
   * @param value the value; null where there is none
   * @param lineage what it depends on
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares what was read.
  public record Found(byte @Nullable [] value, Lineage lineage) {}

  private RedisShim(Builder builder) {
    super(builder);
    this.address = builder.address;
    this.timeout = builder.timeout == null ? builder.address.getTimeout() : builder.timeout;
    this.prefix = builder.prefix;
    this.barriers = builder.barriers;
    this.primary = builder.primary;
    requireIsPrimary(builder.named);
    this.keepsLogHistory = builder.keepsLogHistory;
    this.client =
        builder.resources == null ? RedisClient.create() : RedisClient.create(builder.resources);
    client.setOptions(
        ClientOptions.builder()
            .autoReconnect(false)
            .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
            .build());
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param address of the one server that this process reads, and writes where it is the primary
   */
  public static Builder builder(String datastore, RedisURI address) {
    return new Builder(datastore, address);
  }

  /** Describes a shim. */
  public static final class Builder extends ShimBuilder<Builder, RedisShim> {
    private final RedisURI address;
    private String prefix = "ap:";
    private boolean keepsLogHistory;
    private @Nullable ReadBarriers barriers;
    private @Nullable Supplier<? extends StatefulRedisConnection<?, ?>> primary;
    private @Nullable StatefulRedisConnection<?, ?> named;
    private @Nullable Duration timeout;
    private @Nullable ClientResources resources;

    private Builder(String datastore, RedisURI address) {
      super(datastore);
      this.address = Objects.requireNonNull(address, "address");
    }

    /** Names the prefix of companion keys, alike in every service; {@code ap:} by default. */
    public Builder prefix(String prefix) {
      if (prefix.isEmpty()) {
        throw new ConfigurationException(
            "the prefix must not be empty: a companion needs a key of its own");
      }
      this.prefix = prefix;
      return this;
    }

    /** Notes, after a promotion, in {@code antipode:log} where the old log ended. */
    public Builder keepingLogHistory() {
      this.keepsLogHistory = true;
      return this;
    }

    /** Lets reads wait automatically, or not, whatever is configured. */
    public Builder barriers(ReadBarriers barriers) {
      this.barriers = barriers;
      return this;
    }

    /**
     * Names the connection at which a read is made, with {@code on_stale=primary}, that would be
     * stale at this replica.
     *
     * @param instrumented to the primary of this datastore, and to the same database; shared by all
     *     such reads
     */
    public Builder primary(StatefulRedisConnection<?, ?> instrumented) {
      this.named = Objects.requireNonNull(instrumented, "instrumented");
      return primary(() -> instrumented);
    }

    /** As {@link #primary(StatefulRedisConnection)}, of a connection that is made later. */
    public Builder primary(Supplier<? extends StatefulRedisConnection<?, ?>> instrumented) {
      this.primary = Objects.requireNonNull(instrumented, "instrumented");
      return this;
    }

    /** Says after which the client gives a server up; by default that of the address. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /** Shares the threads of the application's clients. */
    public Builder resources(ClientResources resources) {
      this.resources = resources;
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected RedisShim build() {
      return new RedisShim(this);
    }
  }

  // What it is to barriers.

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
  public Object server() {
    return address.getHost() + ":" + address.getPort();
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) {
    return new RedisEndpoint(Link.open(client, address, timeout), history, prefix);
  }

  @Override
  public @Nullable WriteId logStart(String key) {
    return LOG.matcher(key).matches() ? WriteId.of(datastore(), key, 1) : null;
  }

  @Override
  public Set<WriteId> fence(Duration timeout) throws RefusedException {
    try (Link link = Link.open(client, address, timeout)) {
      RedisFuture<String> info = link.commands().info(Look.SECTION);
      link.flush();
      ServerState state = ServerState.parse(link.answer(info, timeout));
      if (state == null) {
        throw new RefusedException("INFO replication lacks what a position needs");
      }
      if (!state.isPrimary()) {
        throw new UnreachableException("the primary of " + datastore() + " is a replica now");
      }
      return state.isNumbering()
          ? Set.of(Tokens.position(datastore(), state).asCovering(), following(state.log()))
          : Set.of();
    } catch (RedisException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  @Override
  public boolean abandon(Promise promise, Duration timeout) {
    try (Link link = Link.open(client, address, timeout)) {
      byte[] key = Look.recordKey(promise, prefix);
      RedisFuture<String> set =
          link.commands().set(key, Look.bytes(Companion.ABANDONED), recordArgs(promise));
      RedisFuture<byte[]> get = link.commands().get(key);
      link.flush();
      @Nullable String ignored = link.answer(set, timeout);
      return Companion.ABANDONED.equals(Look.text(link.answer(get, timeout)));
    } catch (RedisException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  private static SetArgs recordArgs(Promise promise) {
    return SetArgs.Builder.nx().ex(recordLife(promise).plusMillis(999).toSeconds());
  }

  String prefix() {
    return prefix;
  }

  LogHistory history() {
    return history;
  }

  // The application's own connections.

  /** Returns where reads are made that would be stale here; null for nowhere. */
  @Nullable Supplier<? extends StatefulRedisConnection<?, ?>> primary() {
    return primary;
  }

  private void requireIsPrimary(@Nullable StatefulRedisConnection<?, ?> named) {
    RedisShim shim = named == null ? null : Instrumented.shimOf(named);
    boolean isIt =
        shim != null
            && shim.datastore().equals(datastore())
            && shim.readsFrom() == ReadsFrom.PRIMARY;
    if (named != null && !isIt && !KillSwitch.isDisabled()) {
      throw new ConfigurationException(
          "primary() takes an instrumented connection to the primary of " + datastore());
    }
  }

  /** Refuses a client whose stale reads are to be made at a primary that it does not have. */
  void requirePrimary(boolean hasPrimary) {
    Settings settings = Settings.current();
    ReadBarriers reads = barriers == null ? settings.barriers() : barriers;
    if (!hasPrimary
        && readsFrom() == ReadsFrom.REPLICA
        && reads == ReadBarriers.AUTO
        && settings.onStale() == OnStale.PRIMARY) {
      throw new ConfigurationException(
          "on_stale=primary needs a connection of Lettuce to the primary of "
              + datastore()
              + ", which the builder of its replica's shim takes as primary()");
    }
  }

  /**
   * Instruments a connection of the application's to the server of this shim: what is written by
   * what is returned, in any of its APIs, enters the current scope, and reads are held back by
   * floors. Results and errors stay Lettuce's; reads that are not held back go their way. Nothing
   * is stored with values.
   *
   * <p>A pool is instrumented where it makes its connections, each with its {@link Places}.
   *
   * @param connection as {@code RedisClient.connect} returned it
   * @throws ConfigurationException if reads of it may go to another server than its writes, or it
   *     is wrapped already; if {@code on_stale=primary} needs {@link Builder#primary}
   */
  public <K, V> StatefulRedisConnection<K, V> instrument(StatefulRedisConnection<K, V> connection) {
    return instrumented(connection, null);
  }

  /**
   * As {@link #instrument(StatefulRedisConnection)}, of a connection that a pool makes.
   *
   * @param places of that pool: at most half of its connections are kept by reads that wait
   */
  public <K, V> StatefulRedisConnection<K, V> instrument(
      StatefulRedisConnection<K, V> connection, Places places) {
    return instrumented(connection, places.ofConnection());
  }

  private <K, V> StatefulRedisConnection<K, V> instrumented(
      StatefulRedisConnection<K, V> connection, @Nullable Places places) {
    if (KillSwitch.isDisabled()) {
      return connection;
    }
    requirePrimary(primary != null);
    if (connection instanceof StatefulRedisMasterReplicaConnection<?, ?>) {
      throw new ConfigurationException(
          "reads of this connection to "
              + datastore()
              + " go to a server that its ReadFrom chooses, and may be answered by another one"
              + " than the library has asked: use a connection and a shim for each server");
    }
    if (!(connection instanceof StatefulRedisConnectionImpl<K, V> real)) {
      throw new ConfigurationException(
          "a connection is instrumented as RedisClient.connect returns it, to one server: "
              + connection.getClass().getName());
    }
    RedisFuture<String> info = real.async().info("server");
    String process = "";
    @Nullable RedisException refusal = null;
    try {
      process = Link.runId(info.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
    } catch (ExecutionException | TimeoutException error) {
      info.cancel(true);
      refusal =
          error.getCause() instanceof RedisException own
              ? own
              : new RedisException("the address does not pass INFO", error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new RedisCommandInterruptedException(error);
    }
    return Instrumented.face(real, new Traffic<>(this, real, process, refusal, places));
  }

  // Table 2.

  /**
   * Sets a key to a value, with the current lineage, in one round trip.
   *
   * @return the lineage with this write, which enters the current scope as well
   */
  public Lineage write(String key, byte[] value) {
    return write(key, value, Antipode.current(), null);
  }

  /**
   * Sets a key to a value, with a lineage, in one round trip; two where it fulfils a promise.
   *
   * @param lineage what the value depends on
   * @param fulfils a promise that this write fulfils, in the same transaction; null for none
   * @return the lineage with this write, which enters the current scope as well
   * @throws PromiseAbandonedException if the promise was given up; nothing is written
   * @throws RedisException as Lettuce does; without an answer the scope becomes incomplete
   */
  public Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils) {
    Recording.recordStored(null);
    byte[] companion = Look.bytes(Companion.pack(value, LineageText.stored(lineage)));
    return send(
        lineage,
        fulfils,
        commands -> {
          Link.queued(commands.set(Look.bytes(key), value));
          Link.queued(commands.set(Look.bytes(prefix + key), companion));
        });
  }

  /**
   * Deletes a key; a tombstone keeps the lineage for who finds nothing.
   *
   * @return the lineage with this write, which enters the current scope as well
   */
  public Lineage delete(String key, Lineage lineage) {
    Recording.recordStored(null);
    byte[] tombstone = Look.bytes(Companion.pack(null, LineageText.stored(lineage)));
    SetArgs expiring = SetArgs.Builder.px(Settings.current().horizon().toMillis());
    return send(
        lineage,
        null,
        commands -> {
          Link.queued(commands.del(Look.bytes(key)));
          Link.queued(commands.set(Look.bytes(prefix + key), tombstone, expiring));
        });
  }

  private interface Packet {
    void queue(RedisAsyncCommands<byte[], byte[]> commands);
  }

  private Lineage send(Lineage base, @Nullable Promise fulfils, Packet packet) {
    Link link = take(null);
    boolean isSent = false;
    try {
      for (int nth = 0; nth < FULFILMENTS; nth++) {
        if (fulfils != null) {
          watch(link, fulfils);
        }
        RedisAsyncCommands<byte[], byte[]> commands = link.commands();
        Link.queued(commands.multi());
        packet.queue(commands);
        if (fulfils != null) {
          byte[] record = Look.bytes(Companion.FULFILLED);
          Link.queued(commands.set(Look.recordKey(fulfils, prefix), record, recordArgs(fulfils)));
        }
        RedisFuture<TransactionResult> exec = commands.exec();
        @Nullable RedisFuture<String> info =
            link.refusal() == null ? commands.info(Look.SECTION) : null;
        link.flush();
        isSent = true;
        TransactionResult answers = link.answer(exec, timeout);
        if (answers.wasDiscarded()) { // Another record came first: nothing was written.
          isSent = false;
          continue;
        }
        for (int each = 0; each < answers.size(); each++) {
          Object unused = Link.element(answers, each); // What was refused is thrown.
        }
        return written(link, base, info);
      }
      throw new RedisException("the record of " + fulfils + " changes all the time");
    } catch (RedisCommandExecutionException error) {
      throw error; // It was refused: nothing was written.
    } catch (RedisException error) {
      link.close();
      if (isSent) {
        Recording.markIncomplete(datastore(), "in_doubt");
      }
      throw error;
    } finally {
      release(link);
    }
  }

  /** Makes the transaction that follows fail if another record comes first. */
  private void watch(Link link, Promise promise) {
    byte[] key = Look.recordKey(promise, prefix);
    RedisFuture<String> watch = link.commands().watch(key);
    RedisFuture<byte[]> get = link.commands().get(key);
    link.flush();
    String ignored = link.answer(watch, timeout);
    if (Companion.ABANDONED.equals(Look.text(link.answer(get, timeout)))) {
      link.close(); // Whoever gets it next watches nothing.
      throw new PromiseAbandonedException(promise);
    }
  }

  private Lineage written(Link link, Lineage base, @Nullable RedisFuture<String> info) {
    @Nullable ServerState state = null;
    String cause = "the server does not say its position";
    try {
      state = info == null ? null : ServerState.parse(link.answer(info, timeout));
    } catch (RedisException error) {
      if (!(error instanceof RedisCommandExecutionException)) {
        link.close();
      }
      cause = String.valueOf(error.getMessage());
    }
    Lineage token = Tokens.ofWrite(datastore(), state);
    if (state == null) {
      unsampled(cause);
    } else {
      noteLog(link, state);
    }
    enter(token);
    return base.merge(token);
  }

  /** Counts a write that has no position. */
  private void unsampled(String cause) {
    countUncovered("redis", cause);
  }

  /**
   * Enters what a client's command did into the current scope.
   *
   * @param done whether it was a write, or may have been one
   * @param before the state before what may have been one; null where it could not be had
   * @param after the state after it; null where it could not be had
   * @param refusal why that was not asked for; null where it was
   */
  void enter(
      Kind done,
      String name,
      @Nullable ServerState before,
      @Nullable ServerState after,
      @Nullable Exception refusal) {
    if (done == Kind.NEITHER) {
      return;
    }
    if (after == null) {
      unsampled(refusal == null ? "no answer after it" : String.valueOf(refusal.getMessage()));
    }
    enter(
        done == Kind.WRITE
            ? Tokens.ofWrite(datastore(), after)
            : Tokens.ofUnknown(datastore(), before, after));
    if (done == Kind.UNKNOWN && name.equals("MIGRATE")) {
      Recording.markIncomplete(datastore(), "in_doubt"); // In the log of another server.
    }
  }

  /** Enters what a write came to into the current scope. */
  private static void enter(Lineage token) {
    token.writes().forEach(Recording::recordWrite);
    token.incomplete().forEach(mark -> Recording.markIncomplete(mark.subject(), mark.reason()));
  }

  /** Notes, once for each promotion, where the log before ended, so that replicas know. */
  private void noteLog(Link link, ServerState state) {
    for (Map.Entry<String, Long> ended : notes(state).entrySet()) {
      RedisFuture<Boolean> note =
          link.commands()
              .hset(
                  Look.bytes(LogHistory.KEY),
                  Look.bytes(ended.getKey()),
                  Look.bytes(ended.getValue().toString()));
      link.flush();
      try {
        boolean ignored = link.answer(note, timeout);
      } catch (RedisException error) {
        link.close(); // The write is done; replicas learn of the log from another writer.
      }
    }
  }

  /** Returns what a primary is to note of the log before its own; empty where it was noted. */
  Map<String, Long> notes(ServerState state) {
    Map<String, Long> notes = Tokens.notes(state);
    if (!keepsLogHistory || notes.isEmpty() || !noted.add(state.log())) {
      return Map.of();
    }
    Counts.count("log_history_noted", datastore());
    return notes;
  }

  /**
   * Returns the value of a key, and what it depends on: its stored lineage, and a covering
   * position. It enters the current scope. Under a floor the read is held back until that is met.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws RedisException as Lettuce does
   */
  public Found read(String key) throws Exception {
    StaleRead stale = new StaleRead();
    @Nullable Floor floor = Floor.current(this, null, stale);
    Link link = take(floor);
    try {
      Reply reply = ask(link, key, floor);
      boolean isFinal = false;
      while (floor != null && !accepts(floor, link, reply, isFinal)) {
        floor.hold(this, most -> look(link, floor, most));
        reply = ask(link, key, floor);
        isFinal = true;
      }
      Found found = found(link, reply);
      stale.answered();
      return found;
    } catch (RedisCommandExecutionException error) {
      throw error;
    } catch (RedisException error) {
      link.close();
      throw error;
    } catch (UnreachableException error) {
      link.close();
      throw error;
    } finally {
      release(link);
    }
  }

  /**
   * Returns what will be found by {@link #read}, in the current scope.
   *
   * @param executor whose threads read, and wait while the read is held back
   */
  public CompletableFuture<Found> readAsync(String key, Executor executor) {
    return inScope(() -> read(key), executor);
  }

  /** The answers to a read: a position and both keys at one moment, and the position after it. */
  private record Reply(
      TransactionResult answers, RedisFuture<String> after, List<Promise> promises) {}

  private Reply ask(Link link, String key, @Nullable Floor floor) {
    if (link.refusal() != null) {
      throw new ConfigurationException(
          "a read of " + datastore() + " asks for INFO, which is refused: " + link.refusal());
    }
    List<Promise> promises = floor == null ? List.of() : floor.promises();
    RedisAsyncCommands<byte[], byte[]> commands = link.commands();
    Link.queued(commands.multi());
    Link.queued(commands.info(Look.SECTION));
    Link.queued(commands.get(Look.bytes(key)));
    Link.queued(commands.get(Look.bytes(prefix + key)));
    if (!promises.isEmpty()) {
      Link.queued(commands.mget(Look.recordKeys(promises, prefix)));
    }
    RedisFuture<TransactionResult> exec = commands.exec();
    RedisFuture<String> after = commands.info(Look.SECTION);
    link.flush();
    try {
      Duration most = floor == null ? timeout : floor.pollTimeout();
      return new Reply(link.answer(exec, most), after, promises);
    } catch (RedisCommandExecutionException error) {
      throw error;
    } catch (RedisException error) {
      if (floor != null) {
        link.close();
        UnreachableException away =
            new UnreachableException(String.valueOf(error.getMessage()), error);
        floor.expire(away);
      }
      throw error;
    }
  }

  private boolean accepts(Floor floor, Link link, Reply reply, boolean isFinal) {
    @Nullable ServerState state = ServerState.parse(Link.string(reply.answers, 0));
    if (state == null) {
      return floor.accepts(refused(floor, "INFO replication lacks what a position needs"));
    }
    List<@Nullable String> records =
        reply.promises.isEmpty() ? List.of() : Link.values(reply.answers, 3);
    List<WriteId> writes = floor.writes();
    Observation shown =
        Positions.observation(state, link.process(), writes, history, reply.promises, records);
    if (!isFinal && !Positions.unknownLogs(shown, writes).isEmpty()) {
      return false;
    }
    return floor.accepts(shown);
  }

  private Observation look(Link link, Floor floor, Duration most) {
    try {
      Look look = new Look(link, history, prefix, most);
      Observation shown = look.at(floor.writes(), floor.promises());
      return Positions.patient(shown, floor.writes());
    } catch (RefusedException error) {
      return refused(floor, String.valueOf(error.getMessage()));
    } catch (RedisException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  private static Observation refused(Floor floor, String cause) {
    Observation.Builder shown = Observation.of("");
    floor.writes().forEach(write -> shown.write(write, Status.UNDECIDABLE, cause));
    floor.promises().forEach(promise -> shown.promise(promise, Status.UNDECIDABLE));
    return shown.build();
  }

  private Found found(Link link, Reply reply) {
    byte @Nullable [] value = Link.value(reply.answers, 1);
    Companion.Stored stored =
        Companion.unpack(value, Companion.Shown.WHOLE, Link.value(reply.answers, 2), datastore());
    if (stored.match() != Companion.Match.OWN) {
      Counts.count(stored.match().metric(), datastore());
    }
    Lineage lineage = stored.lineage().merge(covering(link, reply.after));
    recordRead(lineage);
    return new Found(value, lineage);
  }

  private Lineage covering(Link link, RedisFuture<String> after) {
    @Nullable ServerState state = null;
    try {
      state = ServerState.parse(link.answer(after, timeout));
    } catch (RedisCommandExecutionException error) {
      Counts.count("unsampled_read", datastore());
    }
    return Tokens.ofRead(datastore(), state);
  }

  // Connections.

  private Link take(@Nullable Floor floor) {
    for (Link link = idle.poll(); link != null; link = idle.poll()) {
      if (link.isOpen()) {
        return link;
      }
      link.close();
    }
    if (isClosed) {
      throw new RedisException("the shim of " + datastore() + " is closed");
    }
    try {
      return Link.open(client, address, floor == null ? CONNECT : floor.pollTimeout());
    } catch (UnreachableException error) {
      if (floor != null) {
        floor.expire(error);
      }
      throw new RedisException(error.getMessage(), error);
    }
  }

  private void release(Link link) {
    if (link.isOpen() && !isClosed) {
      idle.push(link);
    } else {
      link.close();
    }
  }

  /** Unregisters, and releases every connection of the shim's own; may be called again. */
  @Override
  public void close() {
    isClosed = true;
    super.close();
    for (Link link = idle.poll(); link != null; link = idle.poll()) {
      link.close();
    }
    client.shutdown(0, 0, TimeUnit.SECONDS);
  }
}
