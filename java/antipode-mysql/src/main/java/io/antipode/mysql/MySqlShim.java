package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.InstrumentedPool;
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
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * One server of MySQL or MariaDB as one process sees it: values with their stored lineage, waits,
 * promises. What is written here is read by the shims of other languages, and the reverse.
 */
public final class MySqlShim extends SqlShim {
  private static final Map<Flavor, String> COVER =
      Map.of(
          Flavor.MYSQL,
          "SELECT @@GLOBAL.gtid_owned AS gtid_owned, @@GLOBAL.gtid_executed AS gtid_executed,"
              + " @@GLOBAL.gtid_mode AS gtid_mode",
          Flavor.MARIADB,
          "SELECT @@GLOBAL.gtid_binlog_pos AS gtid_binlog_pos");

  private final Address address;
  private final Runs runs = new Runs();
  private final LinkServers.Silent silent = new LinkServers.Silent();
  private final Set<String> readonlyFunctions;
  private final Map<String, Listing> views = new ConcurrentHashMap<>();
  private final Table values;

  /** Whether a pool of the application's leads to several servers. */
  private volatile boolean isReadingFromSeveral;

  /** Why connections are not known to lead to one server each; empty while all of them are. */
  private volatile String proxied = "";

  private MySqlShim(Builder builder, Address address, Set<String> readonlyFunctions) {
    super(builder);
    this.address = address;
    this.readonlyFunctions = readonlyFunctions;
    this.values = new Table(this, address);
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
  public static final class Builder extends SqlShimBuilder<Builder, MySqlShim> {
    private Builder(String datastore, String url) {
      super(datastore, url);
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected MySqlShim build() {
      return new MySqlShim(this, Address.of(url(), user(), password()), readonlyFunctions());
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
   * invisible column and triggers for that: {@link MySqlMigrations} has what to run. A connection
   * says so where they are missing.
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

  @Override
  protected Table2<?> table2() {
    return values;
  }

  /** Returns the functions that the application declares to write nothing. */
  Set<String> readonlyFunctions() {
    return readonlyFunctions;
  }

  /** Returns what connections know of the views of a server. */
  Listing views(String server) {
    return views.computeIfAbsent(server, unused -> new Listing());
  }

  /** Returns where runs of numbers begin on its server. */
  Runs runs() {
    return runs;
  }

  // What it is to barriers.

  @Override
  public boolean pollsForPromises() {
    return !address.database().isEmpty();
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
    if (!isStated() && proxied.isEmpty() && !facts.proxied().isEmpty()) {
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

  /** Returns a position that covers what a connection read, or the mark that there is none. */
  Lineage covering(Link link) throws SQLException {
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
}
