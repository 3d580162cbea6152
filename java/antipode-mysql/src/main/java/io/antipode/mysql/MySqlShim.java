package io.antipode.mysql;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.PromiseAbandonedException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.InstrumentedPool;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * One server of MySQL or MariaDB as one process sees it: values with their stored lineage, waits,
 * promises. What is written here is read by the shims of other languages, and the reverse.
 */
public final class MySqlShim extends Shim {
  private static final Logger LOG = Logger.getLogger("antipode");

  /** The longest that making a connection may take; the first one of a process takes its time. */
  private static final Duration CONNECT = Duration.ofSeconds(5);

  private static final Duration SWEEP = Duration.ofMillis(500);

  /** At one of how many fulfilments old records are deleted. */
  private static final int SWEEP_EVERY = 16;

  private static final Map<Flavor, String> COVER =
      Map.of(
          Flavor.MYSQL,
          "SELECT @@GLOBAL.gtid_owned AS gtid_owned, @@GLOBAL.gtid_executed AS gtid_executed,"
              + " @@GLOBAL.gtid_mode AS gtid_mode",
          Flavor.MARIADB,
          "SELECT @@GLOBAL.gtid_binlog_pos AS gtid_binlog_pos");

  private final Address address;
  private final Duration timeout;
  private final Runs runs = new Runs();
  private final LinkServers.Silent silent = new LinkServers.Silent();
  private final Deque<Link> idle = new ConcurrentLinkedDeque<>();
  private volatile boolean isClosed;

  private final Set<String> readonlyFunctions;

  /** The application states that all statements of a connection reach one server. */
  private final boolean isStated;

  /** Whether a pool of the application's leads to several servers. */
  private volatile boolean isReadingFromSeveral;

  /** Why connections are not known to lead to one server each; empty while all of them are. */
  private volatile String proxied = "";

  /**
   * What a read found.
   *
   * @param value the value; null where there is none
   * @param lineage what it depends on
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares what was read.
  public record Found(byte @Nullable [] value, Lineage lineage) {}

  private MySqlShim(Builder builder) {
    super(builder);
    this.address = Address.of(builder.url, builder.user, builder.password);
    this.timeout = builder.timeout;
    this.isStated = builder.isStated;
    this.readonlyFunctions = Functions.declared(builder.readonlyFunctions);
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param url of the one server that this process reads, and writes where it is the primary:
   *     {@code jdbc:mysql://host:3306/database} for Connector/J, {@code jdbc:mariadb:} for
   *     MariaDB's driver; one that names no server cannot be registered
   */
  public static Builder builder(String datastore, String url) {
    return new Builder(datastore, url);
  }

  /** Describes a shim. */
  public static final class Builder extends ShimBuilder<Builder, MySqlShim> {
    private final String url;
    private Duration timeout = Duration.ofSeconds(60);
    private @Nullable String user;
    private @Nullable String password;
    private boolean isStated;
    private Set<String> readonlyFunctions = Set.of();

    private Builder(String datastore, String url) {
      super(datastore);
      this.url = Objects.requireNonNull(url, "url");
    }

    /** Says who asks the server, where the URL does not. */
    public Builder user(String user, String password) {
      this.user = user;
      this.password = password;
      return this;
    }

    /** Says after which reads and writes give the server up; after a minute by default. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /**
     * States that all statements of a connection, of pools too, reach one server, whatever stands
     * between. Else each connection is checked, and reads that have to wait are refused where a
     * proxy accepted one.
     */
    public Builder oneServer() {
      this.isStated = true;
      return this;
    }

    /**
     * Declares functions, stored or loadable, that write nothing. After a statement that calls
     * another one which is not built in, the server is asked whether it wrote.
     *
     * @param names as statements have them, with a schema or without, in any case
     */
    public Builder readonlyFunctions(Set<String> names) {
      this.readonlyFunctions = Set.copyOf(names);
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected MySqlShim build() {
      return new MySqlShim(this);
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
   * the pool wraps. Connections of Connector/J get their positions with the replies where the pool
   * opens them with {@code trackSessionState=true}; all others ask for each, in a round trip.
   *
   * @param pool of connections to the server that this shim is of, and to no other: where its URL
   *     names several, barriers and the reads that they hold back are refused
   */
  public DataSource instrument(DataSource pool) {
    return instrumented(pool, null);
  }

  /**
   * Returns a pool as {@link #instrument(DataSource)} does, which keeps the lineage of each row of
   * some tables with it, and lets who reads a row depend on what is there. Servers need an
   * invisible column and triggers for that: {@code python -m antipode_shims.mysql migration} prints
   * what to run. A connection says so where they are missing.
   *
   * @param tables by their names, each with its schema before it where that is another
   * @throws ConfigurationException if no table is named
   */
  public DataSource instrument(DataSource pool, Set<String> tables) {
    if (tables.isEmpty() || tables.stream().anyMatch(String::isBlank)) {
      throw new ConfigurationException(
          "lineages are stored with the rows of tables: name those of " + datastore());
    }
    return instrumented(pool, new Migrated(new Tables(tables), datastore()));
  }

  private DataSource instrumented(DataSource pool, @Nullable Migrated migrated) {
    if (KillSwitch.isDisabled()) {
      return pool;
    }
    if (Reach.isSeveral(pool)) {
      readsFromSeveral();
    }
    return InstrumentedPool.of(pool, this, new Lending(this, migrated));
  }

  /** Returns the shim of an instrumented pool, or of that which it decorates; null for none. */
  public static @Nullable MySqlShim of(DataSource pool) {
    return InstrumentedPool.shimOf(pool) instanceof MySqlShim shim ? shim : null;
  }

  /** Returns the functions that the application declares to write nothing. */
  Set<String> readonlyFunctions() {
    return readonlyFunctions;
  }

  /** Returns where runs of numbers begin on its server. */
  Runs runs() {
    return runs;
  }

  // What it is to barriers.

  @Override
  public boolean holdsReads() {
    return true;
  }

  @Override
  public boolean canFence() {
    return readsFrom() == ReadsFrom.PRIMARY;
  }

  @Override
  public boolean pollsForPromises() {
    return !address.database().isEmpty();
  }

  @Override
  public boolean canAbandon() {
    return readsFrom() == ReadsFrom.PRIMARY && pollsForPromises();
  }

  @Override
  public Object server() {
    return address.toString();
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) throws RefusedException {
    requireOneServer();
    return new MySqlEndpoint(this, address, timeout, silent, promises());
  }

  /** Notes that a pool of the application's leads to several servers. */
  void readsFromSeveral() {
    isReadingFromSeveral = true;
  }

  /**
   * Refuses to poll one server for reads that may go to another one.
   *
   * @throws ConfigurationException that says what to change
   */
  void requireOneServer() {
    if (isReadingFromSeveral) {
      throw new ConfigurationException(
          "barriers cannot wait at "
              + address
              + " for reads of a pool of "
              + datastore()
              + ": "
              + Reach.SEVERAL);
    }
  }

  /**
   * Notes what a connection leads to; returns whether it is known to lead to one server. One that
   * shows a proxy shows it for all of them: by chance the numbers of another may be equal.
   */
  boolean reached(Facts facts) {
    if (!isStated && proxied.isEmpty() && !facts.proxied().isEmpty()) {
      proxied = facts.proxied();
    }
    return proxied.isEmpty();
  }

  /**
   * Refuses to wait where nobody can, or where another server may be read than the one that
   * answers.
   *
   * @throws ConfigurationException that says what to change
   */
  void require(Facts facts) {
    facts.require(datastore());
    if (!reached(facts)) {
      throw new ConfigurationException("reads of " + datastore() + " cannot wait: " + proxied);
    }
  }

  private String promises() {
    return Records.table(address.database());
  }

  @Override
  public @Nullable WriteId logStart(String key) {
    MySqlLog log = MySqlLog.of(key); // Two servers of MariaDB may number their domains alike.
    return log == null ? null : WriteId.of(datastore(), log.key(), log.first());
  }

  @Override
  public Set<WriteId> fence(Duration timeout) throws RefusedException, NoGtidException {
    try (Link link = Link.open(address, timeout, runs)) {
      Facts facts = link.facts();
      if (!facts.lacking().isEmpty()) {
        throw new ConfigurationException(
            "writes to "
                + datastore()
                + " have no positions: "
                + String.join("; ", facts.lacking()));
      }
      Map<String, String> asked = link.ask(cover(facts.flavor())).get(0);
      // Asked after the position: what still takes writes was the primary then.
      Servers servers = new LinkServers(link, address, silent, timeout);
      boolean isWritable = servers.state(null).isWritable();
      Set<String> names =
          facts.flavor() == Flavor.MYSQL ? Set.of(facts.uuid()) : servers.primaries(null);
      if (!isWritable || names.isEmpty()) {
        throw new UnreachableException("the primary of " + datastore() + " takes no writes now");
      }
      Set<WriteId> fence =
          new HashSet<>(Positions.covered(facts.flavor(), asked, datastore()).writes());
      if (!fence.isEmpty()) {
        names.forEach(name -> fence.add(following(name)));
      }
      return fence;
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  /** Returns the question for a position that covers all that a server has executed. */
  static String cover(Flavor flavor) {
    return Objects.requireNonNull(COVER.get(flavor));
  }

  @Override
  public boolean abandon(Promise promise, Duration timeout) throws Exception {
    String sql = Records.recording(promises(), promise, false, recordLife(promise));
    try (Link link = Link.connect(address, timeout)) {
      return link.update(sql) != Records.OPPOSITE;
    } catch (SQLException error) {
      Exception explained = Records.explained(datastore(), error);
      if (explained == error) { // Somebody holds the record for too long, or no writes are taken.
        throw new UnreachableException(String.valueOf(error.getMessage()), error);
      }
      throw explained;
    }
  }

  // Table 2.

  /**
   * Sets a key to a value, with the current lineage, in one statement.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws SQLException as {@link #write(String, byte[], Lineage, Promise)}
   */
  public Lineage write(String key, byte[] value) throws SQLException {
    return write(key, value, Antipode.current(), null);
  }

  /**
   * Sets a key to a value, with a lineage, in one statement; in a transaction where it fulfils a
   * promise.
   *
   * @param lineage what the value depends on
   * @param fulfils a promise that this write fulfils, in the same transaction; null for none
   * @return the lineage with this write, which enters the current scope as well
   * @throws PromiseAbandonedException if the promise was given up; nothing is written
   * @throws ConfigurationException if a table is missing
   * @throws SQLException as the driver does; without an answer to the commit the scope becomes
   *     incomplete
   */
  public Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws SQLException {
    String text = LineageText.stored(lineage);
    if (fulfils == null) {
      return commit(lineage, link -> Table.write(link, key, value, text));
    }
    Lineage written =
        commit(
            lineage,
            inTransaction(
                link -> {
                  record(fulfils, link::update);
                  Table.write(link, key, value, text);
                }));
    sweep();
    return written;
  }

  /**
   * Deletes a key; a tombstone keeps the lineage for who finds nothing.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws SQLException as {@link #write(String, byte[], Lineage, Promise)}
   */
  public Lineage delete(String key, Lineage lineage) throws SQLException {
    String text = LineageText.stored(lineage);
    return commit(lineage, inTransaction(link -> Table.delete(link, key, text)));
  }

  /**
   * Records, in the open transaction of a connection of the application's, that a promise is
   * fulfilled: with its commit the record becomes visible together with its data, and a rollback
   * takes it along.
   *
   * @throws PromiseAbandonedException if the promise was given up: let the transaction roll back
   * @throws ConfigurationException if each statement of the connection commits on its own, or the
   *     table is missing
   */
  public void fulfil(Connection connection, Promise promise) throws SQLException {
    if (connection.getAutoCommit()) {
      throw new ConfigurationException(
          "a promise is fulfilled in the transaction of its data: setAutoCommit(false) first");
    }
    try (Statement statement = connection.createStatement()) {
      record(promise, statement::executeUpdate);
    }
    sweep();
  }

  private interface Update {
    int execute(String sql) throws SQLException;
  }

  private void record(Promise promise, Update update) throws SQLException {
    try {
      String sql = Records.recording(promises(), promise, true, recordLife(promise));
      if (update.execute(sql) == Records.OPPOSITE) {
        throw new PromiseAbandonedException(promise);
      }
    } catch (SQLException error) {
      if (Records.explained(datastore(), error) instanceof ConfigurationException better) {
        throw better;
      }
      throw error;
    }
  }

  /** Deletes records whose time is over, now and then; what fails is left. */
  private void sweep() {
    if (!canAbandon() || ThreadLocalRandom.current().nextInt(SWEEP_EVERY) != 0) {
      return;
    }
    try (Link link = Link.open(address, SWEEP, runs)) {
      Records.sweep(link, promises());
    } catch (SQLException | RefusedException error) {
      LOG.log(Level.FINE, error, () -> "old promises of " + datastore() + " are not swept");
    }
  }

  private interface Work {
    /** Does it; a failure is distinguished from one that left no doubt by {@link Undone}. */
    void run(Link link) throws SQLException;
  }

  /** What failed before anything could be committed. */
  private static final class Undone extends SQLException {
    private static final long serialVersionUID = 1L;

    Undone(SQLException cause) {
      super(cause);
    }
  }

  private static Work inTransaction(Work work) {
    return link -> {
      try {
        link.execute("START TRANSACTION");
        work.run(link);
      } catch (SQLException error) {
        rollBack(link);
        throw new Undone(error);
      } catch (RuntimeException error) {
        rollBack(link);
        throw error;
      }
      link.execute("COMMIT");
    };
  }

  private static void rollBack(Link link) {
    try {
      link.execute("ROLLBACK");
    } catch (SQLException error) {
      link.close(); // The server rolls back.
    }
  }

  private Lineage commit(Lineage base, Work work) throws SQLException {
    Link link = take(null);
    try {
      work.run(link);
      return written(link, base);
    } catch (Undone error) {
      throw explained(link, (SQLException) Objects.requireNonNull(error.getCause()));
    } catch (SQLException error) {
      if (!Errors.isRefusal(error)) {
        link.close();
        Recording.markIncomplete(datastore(), "in_doubt");
      }
      throw explained(link, error);
    } finally {
      release(link);
    }
  }

  /** Returns the error to throw; closes a connection that it broke. */
  private SQLException explained(Link link, SQLException error) {
    if (Errors.NO_TABLE.contains(error.getErrorCode())
        || Errors.NO_COLUMN.contains(error.getErrorCode())) {
      throw new ConfigurationException(
          datastore()
              + " lacks a table or column of Table 2 ("
              + error.getMessage()
              + "); run what is missing of: "
              + String.join("; ", ddl()));
    }
    if (!Errors.isRefusal(error)) {
      link.close();
    }
    return error;
  }

  /** Enters a write that was committed. */
  private Lineage written(Link link, Lineage base) {
    List<WriteId> writes;
    String cause = "the server does not say its position";
    try {
      writes = Positions.minted(link.facts().flavor(), link.committed(), runs, datastore());
    } catch (SQLException error) {
      link.close();
      cause = String.valueOf(error.getMessage());
      writes = List.of();
    } catch (NoGtidException error) {
      cause = String.valueOf(error.getMessage());
      writes = List.of();
    }
    if (writes.isEmpty()) {
      return unsampled(base, cause);
    }
    Lineage written = base;
    for (WriteId write : writes) {
      Recording.recordWrite(write);
      written = written.append(write);
    }
    return written;
  }

  /** Notes that a write has no position; returns a lineage with the mark that says so. */
  Lineage unsampled(Lineage base, String cause) {
    unsampled(cause);
    return base.marked(new Incomplete(datastore(), "unsampled"));
  }

  /** Notes that a write was committed and has no position. */
  void unsampled(String cause) {
    countUncovered("mysql", cause);
    Recording.markIncomplete(datastore(), "unsampled");
  }

  /**
   * Returns the value of a key, and what it depends on: its stored lineage, and a covering
   * position. It enters the current scope. Under a floor the read is held back until that is met.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws ConfigurationException if a table is missing
   * @throws SQLException as the driver does
   */
  public Found read(String key) throws Exception {
    StaleRead stale = new StaleRead();
    @Nullable Floor floor = Floor.current(this, null, stale);
    Link link = take(floor);
    try {
      if (floor != null) {
        floor.hold(this, most -> look(link, floor.writes(), floor.promises(), most));
        link.setTimeout(timeout);
      }
      Table.Row row = Table.read(link, key);
      Lineage stored =
          row == null ? LineageText.stored(datastore(), Table.buried(link, key)) : beside(row);
      stale.answered();
      Lineage lineage = stored.merge(covering(link));
      recordRead(lineage);
      return new Found(row == null ? null : row.value(), lineage);
    } catch (SQLException error) {
      throw explained(link, error);
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

  /** Polls once for writes and promises, on a connection that reads. */
  Observation look(
      Link link, Collection<WriteId> writes, Collection<Promise> promised, Duration most) {
    Observation.Builder shown = Observation.of(link.facts().server());
    try {
      require(link.facts());
      link.setTimeout(most);
      if (!writes.isEmpty()) {
        LinkServers servers = new LinkServers(link, address, silent, most);
        Look.at(servers, link.facts().isGroup(), writes).tell(shown);
      }
      if (!promised.isEmpty()) {
        Records.of(link, promises(), promised).forEach(shown::promise);
      }
    } catch (RefusedException error) {
      String cause = String.valueOf(error.getMessage());
      writes.forEach(write -> shown.write(write, Status.UNDECIDABLE, cause));
      promised.forEach(promise -> shown.promise(promise, Status.UNDECIDABLE));
    } catch (SQLException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
    return shown.build();
  }

  private Lineage beside(Table.Row row) {
    String texts = row.texts();
    if (texts != null && row.isOwn()) {
      return Positions.stored(datastore(), texts);
    }
    Counts.count(texts == null ? "companion_absent" : "foreign", datastore());
    return Lineage.empty();
  }

  private Lineage covering(Link link) throws SQLException {
    Facts facts = link.facts();
    Lineage covering =
        facts.problems().isEmpty() && reached(facts)
            ? Positions.covering(
                facts.flavor(), link.rows(cover(facts.flavor())).get(0), datastore())
            : Lineage.empty().marked(new Incomplete(datastore(), "unsampled"));
    if (!covering.incomplete().isEmpty()) {
      Counts.count("unsampled_read", datastore());
    }
    return covering;
  }

  /** Returns whether what is read enters scopes. */
  boolean takesReads() {
    return mergesReads();
  }

  /**
   * Returns what reads on a connection may have seen so far, marked where nobody knows.
   *
   * @param link that connection; null where it cannot be asked any more
   */
  Lineage sampled(@Nullable Link link) {
    try {
      if (link != null) {
        return covering(link);
      }
    } catch (SQLException error) {
      // Said below.
    }
    Counts.count("unsampled_read", datastore());
    return Lineage.empty().marked(new Incomplete(datastore(), "unsampled"));
  }

  // Connections.

  private Link take(@Nullable Floor floor) throws SQLException {
    Duration most = floor == null ? timeout : floor.pollTimeout();
    for (Link link = idle.poll(); link != null; link = idle.poll()) {
      link.setTimeout(most);
      if (link.isAlive(most)) {
        return link;
      }
      link.close();
    }
    if (isClosed) {
      throw new SQLException("the shim of " + datastore() + " is closed");
    }
    try {
      Duration connecting = most.compareTo(CONNECT) < 0 || floor != null ? most : CONNECT;
      Link link = Link.open(address, connecting, runs);
      link.setTimeout(most);
      return link;
    } catch (RefusedException error) {
      throw new SQLException(error.getMessage(), error);
    } catch (SQLException error) {
      if (floor != null) {
        floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      }
      throw error;
    }
  }

  private void release(Link link) {
    link.release();
    if (isClosed) {
      link.close();
    } else {
      idle.push(link);
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
  }
}
