package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.InstrumentedPool;
import io.antipode.jdbc.PoolProperties;
import io.antipode.jdbc.SqlShim;
import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * One server of PostgreSQL as one process sees it: values with their stored lineage, waits,
 * promises. What is written here is read by the shims of other languages, and the reverse.
 */
public final class PostgreSqlShim extends SqlShim {
  /**
   * How long a commit may take until it is flushed, once its lineage is used: the server does it
   * within three of its {@code wal_writer_delay}, 0.6 s by default.
   */
  private static final Duration FLUSHED = Duration.ofSeconds(1);

  private static final Duration FLUSH_PAUSE = Duration.ofMillis(10);

  private static final int MOST_SERVERS = 64;

  private final Address address;
  private final Set<String> readonlyFunctions;
  private final Catalogue catalogue;
  private final Table values;

  /** By the start of a process: the log that it writes. */
  private final Map<String, Log> logs = new ConcurrentHashMap<>();

  /** How this user may learn of timelines; null where that is not known yet. */
  private volatile @Nullable Rights rights;

  /** Whether a connection showed a pooler, which may lead the next statement elsewhere. */
  private volatile boolean isPooled;

  /** Whether a pool of the application's leads to several servers. */
  private volatile boolean isReadingFromSeveral;

  private PostgreSqlShim(Builder builder, Address address, Set<String> readonlyFunctions) {
    super(builder);
    this.address = address;
    this.readonlyFunctions = readonlyFunctions;
    this.catalogue = new Catalogue(readonlyFunctions);
    this.values = new Table(this, address);
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param url of the one server that this process reads, and writes where it is the primary:
   *     {@code jdbc:postgresql://host:5432/database}; one that names no server, or several, cannot
   *     be registered
   */
  public static Builder builder(String datastore, String url) {
    return new Builder(datastore, url);
  }

  /** Describes a shim. */
  public static final class Builder extends SqlShimBuilder<Builder, PostgreSqlShim> {
    private Builder(String datastore, String url) {
      super(datastore, url);
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected PostgreSqlShim build() {
      return new PostgreSqlShim(this, Address.of(url(), user(), password()), readonlyFunctions());
    }
  }

  /**
   * Returns the statements that make the tables which {@link #write}, {@link #delete} and promises
   * need, for whoever runs migrations: the library makes none.
   */
  public static List<String> ddl() {
    return Table.DDL;
  }

  /**
   * Returns a pool whose connections record their writes, at the commit, and hold reads back where
   * a barrier left that to the read: for code that knows JDBC alone. Wrap the pool itself, not what
   * the pool wraps.
   *
   * @param pool of pgjdbc's connections to the server that this shim is of; others are refused as
   *     they are lent. Where its URL names several servers, each read asks the one that it is made
   *     at, and no barrier is decided before it
   */
  public DataSource instrument(DataSource pool) {
    return instrumented(pool, null);
  }

  /**
   * Returns a pool as {@link #instrument(DataSource)} does, which keeps the lineage of each row of
   * some tables with it, and lets who reads a row depend on what is there. Servers need a side
   * table and triggers for that: {@link PostgreSqlMigrations} has what to run. A statement that
   * names a table says so where they are missing.
   *
   * @param tables by their names, each with its schema before it where that is another
   * @throws ConfigurationException if no table is named
   */
  public DataSource instrument(DataSource pool, Set<String> tables) {
    if (tables.isEmpty() || tables.stream().anyMatch(String::isBlank)) {
      throw new ConfigurationException(
          "lineages are stored with the rows of tables: name those of " + datastore());
    }
    return instrumented(pool, new StoredTables(tables, datastore()));
  }

  private DataSource instrumented(DataSource pool, @Nullable StoredTables tables) {
    if (KillSwitch.isDisabled()) {
      return pool;
    }
    isReadingFromSeveral |= Address.isSeveral(PoolProperties.urls(pool));
    return InstrumentedPool.of(pool, this, new Lending(this, tables));
  }

  /** Returns the shim of an instrumented pool, or of that which it decorates; null for none. */
  public static @Nullable PostgreSqlShim of(DataSource pool) {
    return InstrumentedPool.shimOf(pool) instanceof PostgreSqlShim shim ? shim : null;
  }

  @Override
  protected Table2<?> table2() {
    return values;
  }

  /** Returns the functions that the application declares to write nothing. */
  Set<String> readonlyFunctions() {
    return readonlyFunctions;
  }

  /** Returns by what a statement that only reads may write. */
  Catalogue catalogue() {
    return catalogue;
  }

  // What it is to barriers.

  @Override
  public boolean pollsForPromises() {
    return true;
  }

  @Override
  public boolean canPoll() {
    return !isReadingFromSeveral;
  }

  @Override
  public Object server() {
    return address.toString();
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) throws RefusedException {
    return new PostgreSqlEndpoint(this, address, timeout);
  }

  @Override
  public @Nullable WriteId logStart(String key) {
    Log log = Log.of(key);
    return log == null ? null : WriteId.of(datastore(), log.key(), log.fork());
  }

  @Override
  public Set<WriteId> fence(Duration timeout) throws RefusedException {
    PostgreSqlEndpoint endpoint = new PostgreSqlEndpoint(this, address, timeout);
    try {
      ServerState state = endpoint.state(timeout);
      Log log = state.log();
      if (state.isRecovering()) {
        throw new UnreachableException("the primary of " + datastore() + " takes no writes now");
      }
      if (log == null) {
        throw new UnreachableException(state.unreadable());
      }
      Set<WriteId> fence = new HashSet<>();
      fence.add(write(log, endpoint.flushedAll(timeout), false));
      fence.add(following(log.key()));
      return fence;
    } finally {
      endpoint.close();
    }
  }

  // Looks.

  /** Connects to its server. */
  Link connect(Duration timeout) throws SQLException {
    return Link.connect(address, timeout);
  }

  /**
   * Polls the server of a connection once. Where too little may be seen it is asked what may, for
   * it may be granted by now.
   *
   * @throws SQLException as the driver does
   * @throws NoLsnException if its answer shows no position
   */
  ServerState state(Link link) throws SQLException, NoLsnException {
    Rights known = rights;
    try {
      if (known == null) {
        known = granted(link);
      }
      ServerState state = asked(link, known);
      if (state.chain() == null && !known.readsHistories()) {
        Rights now = granted(link);
        if (now != known) {
          known = now;
          state = asked(link, now);
        }
      }
      rights = known;
      return state;
    } catch (SQLException error) {
      rights = null;
      throw error;
    }
  }

  private ServerState asked(Link link, Rights known) throws SQLException, NoLsnException {
    Map<String, String> row = link.ask(Look.sql(known)).get(0);
    isPooled |= !link.backend().equals(row.getOrDefault("backend", ""));
    return ServerState.of(row);
  }

  /** Returns why another server may be read than was asked; empty where none may. */
  String pooled() {
    return isPooled && !isStated() && readsFrom() == ReadsFrom.REPLICA
        ? "a pooler is between this process and the server of "
            + datastore()
            + ", so that the server that is read need not be the one that is asked: where it leads"
            + " to one server alone, state that by oneServer()"
        : "";
  }

  private static Rights granted(Link link) throws SQLException {
    return Rights.granted(link.ask(Rights.QUESTION).get(0));
  }

  /** Returns what a server shows of writes. */
  Observation.Builder observation(ServerState state, Collection<WriteId> writes) {
    Observation.Builder shown = Observation.of(state.server());
    for (WriteId write : writes) {
      ServerState.Judged judged = state.judge(write);
      shown.write(write, judged.status(), judged.cause());
    }
    return shown;
  }

  /**
   * Polls once, on a connection that reads.
   *
   * @throws UnreachableException if there is no answer now
   * @throws ConfigurationException if another server may be read than the one that answered
   */
  Observation look(
      Link link, Collection<WriteId> writes, Collection<Promise> promises, Duration most) {
    String cause;
    try {
      link.setTimeout(most);
      Observation.Builder shown = observation(state(link), writes);
      if (!pooled().isEmpty()) {
        throw new ConfigurationException(pooled());
      }
      if (!promises.isEmpty()) {
        Records.of(link, promises).forEach(shown::promise);
      }
      return shown.build();
    } catch (SQLException error) {
      cause = String.valueOf(Errors.refused(error).getMessage());
    } catch (NoLsnException error) {
      cause = String.valueOf(error.getMessage());
    }
    Observation.Builder unknown = Observation.of("");
    for (WriteId write : writes) {
      unknown.write(write, Status.UNDECIDABLE, cause);
    }
    promises.forEach(promise -> unknown.promise(promise, Status.UNDECIDABLE));
    return unknown.build();
  }

  /**
   * Returns the flush position of the process that started then, once it has passed a place, or
   * after a second.
   *
   * @throws UnreachableException if it does not answer, or another one does
   * @throws NoLsnException if it is no primary
   */
  long flushed(String started, long until) throws RefusedException, NoLsnException {
    long endNs = System.nanoTime() + FLUSHED.toNanos();
    try (Link link = connect(FLUSHED)) {
      while (true) {
        Map<String, String> row = link.ask(Look.SAMPLE).get(0);
        if (!row.getOrDefault("started", "").equals(started)) {
          throw new UnreachableException("another server answers, or it was restarted");
        }
        long flushed = Lsn.parse(row.getOrDefault("flushed", ""));
        boolean isOver = System.nanoTime() >= endNs || Thread.currentThread().isInterrupted();
        if (isOver || Lsn.isAtLeast(flushed, until)) {
          return flushed;
        }
        LockSupport.parkNanos(FLUSH_PAUSE.toNanos());
      }
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  // Writes.

  /**
   * Records a write, from the answer to {@link Look#SAMPLE} on its connection after its commit.
   *
   * @param isExact whether there was a write; else a position that covers it if there was
   * @param isFlushed whether its commit waited until it was flushed
   * @return what it comes to
   */
  Supplier<Lineage> sampled(
      Link link, Map<String, String> row, boolean isExact, boolean isFlushed) {
    try {
      Supplier<Lineage> found = found(link, row, isExact, isFlushed);
      if (found instanceof Unflushed) {
        Recording.deferRead(found);
      } else {
        found.get().writes().forEach(Recording::recordWrite);
      }
      return found;
    } catch (SQLException | NoLsnException error) {
      Lineage mark = unsampled(String.valueOf(error.getMessage()));
      return () -> mark;
    }
  }

  /**
   * Returns what {@link #sampled} records, which takes the same.
   *
   * @throws NoLsnException if nobody knows in which log the commit is
   */
  Supplier<Lineage> found(Link link, Map<String, String> row, boolean isExact, boolean isFlushed)
      throws SQLException, NoLsnException {
    Log log = log(link, row);
    long position = Lsn.parse(row.getOrDefault("flushed", ""));
    long until = Lsn.flushedEnd(Lsn.parse(row.getOrDefault("inserted", "")));
    if (!isFlushed && !Lsn.isAtLeast(position, until)) {
      return new Unflushed(this, log, until, row.getOrDefault("started", ""), isExact);
    }
    Lineage written = Lineage.empty().append(write(log, position, isExact));
    return () -> written;
  }

  /**
   * Returns the log of the process that answered, asked once for all of its connections.
   *
   * @throws NoLsnException if nobody knows in which log the commit is
   */
  private Log log(Link link, Map<String, String> row) throws SQLException, NoLsnException {
    if (row.getOrDefault("flushed", "").isEmpty()) {
      throw new NoLsnException("a server that takes no writes answered after its commit");
    }
    String started = row.getOrDefault("started", "");
    Log known = logs.get(started);
    if (known != null) {
      return known;
    }
    ServerState state = state(link);
    Log log = state.log();
    if (!state.started().equals(started) || state.isRecovering()) {
      throw new NoLsnException("another server answered than the one that committed it");
    }
    if (log == null) {
      throw new NoLsnException(state.unreadable());
    }
    if (logs.size() >= MOST_SERVERS) {
      logs.clear();
    }
    logs.put(started, log);
    return log;
  }

  /** Returns the entry of a position in a log. */
  WriteId write(Log log, long position, boolean isExact) {
    WriteId write = WriteId.of(datastore(), log.key(), position).writtenAt(Time.hour());
    return isExact ? write : write.asCovering();
  }

  /** Notes that a write was committed and has no position; returns the mark that says so. */
  Lineage unsampled(String cause) {
    Recording.markIncomplete(datastore(), "unsampled");
    return sayUnsampled(cause);
  }

  /** Says the same of a write of an earlier call, whose scope need not be the current one. */
  Lineage sayUnsampled(String cause) {
    countUncovered("postgresql", cause);
    return unsampled();
  }

  private Lineage unsampled() {
    return Lineage.empty().marked(new Incomplete(datastore(), "unsampled"));
  }

  /** Returns a position that covers what a connection read, or the mark that there is none. */
  Lineage covering(Link link) throws SQLException {
    try {
      ServerState state = state(link);
      Log log = state.covers();
      if (log != null && pooled().isEmpty()) {
        return Lineage.empty().append(write(log, state.position(), false));
      }
    } catch (NoLsnException unknown) {
      // Said below.
    }
    return unsampledRead();
  }

  /** Returns whether what is read enters scopes. */
  boolean takesReads() {
    return mergesReads();
  }

  /** Notes that a read has no position that covers it; returns the mark that says so. */
  Lineage unsampledRead() {
    Counts.count("unsampled_read", datastore());
    return unsampled();
  }

  /** Notes that a write may have been committed, and that nobody will ever know where. */
  void inDoubt(String why) {
    Counts.count("uncovered_write", datastore());
    Recording.markIncomplete(datastore(), "in_doubt");
    Counts.logOnce(
        "postgresql_in_doubt",
        datastore(),
        why,
        () ->
            "a write to "
                + datastore()
                + " cannot be waited for, and its lineage is incomplete (in_doubt): "
                + why);
  }

  // What may write, and does not look like it.

  /** Counts a call of functions of which nobody knows whether they write. */
  void unknownFunctions(Set<String> names) {
    for (String name : names) {
      Counts.count("unknown_function", datastore());
      Counts.logOnce(
          "postgresql_unknown_function",
          datastore(),
          name,
          () ->
              "a statement to "
                  + datastore()
                  + " calls "
                  + (name.contains("\"") ? "a function in quotes" : name + "()")
                  + ", which may write: whether it did is asked after it. Where it only reads,"
                  + " declare it by readonlyFunctions");
      return; // A statement is counted once.
    }
  }
}
