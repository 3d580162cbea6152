package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import net.ttddyy.dsproxy.QueryInfo;
import org.jspecify.annotations.Nullable;

/**
 * What is known of one connection of a driver, as long as it lives and whoever borrows it. Without
 * I/O. It may not refer to its connection, for that would keep it alive.
 */
final class Tap {
  private static final String WHO = ", @@server_id AS server_id, @@GLOBAL.read_only AS read_only";

  /** What a write without a position is found by, on its own connection, after its commit. */
  private static final Map<Flavor, String> SAMPLE =
      Map.of(
          Flavor.MYSQL,
          MySqlShim.cover(Flavor.MYSQL) + WHO,
          Flavor.MARIADB,
          "SELECT @@SESSION.last_gtid AS gtid" + WHO);

  /** What a statement does that defines something. */
  static final Set<Effect> DEFINES = EnumSet.of(Effect.WRITES, Effect.COMMITS, Effect.ENDS);

  private static final String FOREIGN =
      "statements of one connection reach several servers, so that what one of them shows says"
          + " nothing of where the next one goes: use one pool for each server";

  private final MySqlShim shim;
  private final Session session = new Session();
  private @Nullable Facts facts;

  /** What makes what is shown here worthless; empty where nothing does. */
  private String trouble = "";

  private boolean isReady;

  /** Of what statements read, where a reply with rows shows no position; else null. */
  private @Nullable Views views;

  /** Keeps the driver listening; null where it reports no positions. */
  private @Nullable Object listener;

  private boolean mayAssignNumbers;
  private boolean mayHoldLineage;
  private String lastGtid = "";
  private @Nullable ConfigurationException error;

  Tap(MySqlShim shim) {
    this.shim = shim;
  }

  Session session() {
    return session;
  }

  /** Returns what is known of the server; null where it could not be asked. */
  @Nullable Facts facts() {
    return facts;
  }

  boolean isReady() {
    return isReady;
  }

  /** Returns whether replies carry positions. */
  boolean isTracked() {
    return listener != null;
  }

  /** Keeps what listens to the connection; null where its driver reports no positions. */
  void listens(@Nullable Object kept) {
    listener = kept;
    session.listens(kept != null);
  }

  /** Notes that a lineage was set, which what is written on the connection gets. */
  void holdsLineage() {
    mayHoldLineage = true;
  }

  /** Returns whether one was, by whoever borrowed the connection. */
  boolean mayHoldLineage() {
    return mayHoldLineage;
  }

  /** Notes what the server behind the connection is. */
  void knows(Facts found, String why) {
    isReady = true;
    facts = found;
    boolean unused = shim.reached(found); // Other connections learn it, too.
    session.reaches(found.server());
    if (trouble.isEmpty()) {
      trouble = why;
    }
    views = isTracked() ? new Views(shim.views(found.server())) : new Views(Listing.ANYTHING);
    List<String> lacking = new ArrayList<>(found.lacking());
    if (!trouble.isEmpty()) {
      lacking.add(trouble);
    }
    if (!lacking.isEmpty()) {
      Counts.logOnce(
          "mysql_configuration",
          shim.datastore(),
          found.server(),
          () ->
              "writes through a connection to "
                  + shim.datastore()
                  + " have no positions: "
                  + String.join("; ", lacking));
    } else if (found.flavor() == Flavor.MYSQL && listener == null) {
      Counts.logOnce(
          "mysql_untracked",
          shim.datastore(),
          "",
          () ->
              "a connection to "
                  + shim.datastore()
                  + " gets no positions with its replies, so that each commit costs a round trip"
                  + " more: open it by Connector/J with trackSessionState=true");
    }
  }

  /**
   * Notes what a call that is about to be made changes of the session.
   *
   * @param autocommit what it sets that to, if it is known
   */
  void starts(Set<Effect> effects, Known autocommit) {
    if (effects.contains(Effect.TRACKING)) {
      isReady = false; // Asked for again after it.
    }
    mayAssignNumbers |= effects.contains(Effect.NUMBERS);
    boolean defines = effects.containsAll(DEFINES);
    if (defines || effects.contains(Effect.NAMES)) {
      renamed(defines);
    }
    session.starts(effects, autocommit);
  }

  /**
   * Refuses a server where nobody can wait for positions, or another than which may be read.
   *
   * @throws ConfigurationException that says what to change
   */
  Facts require() {
    if (facts == null) {
      throw new ConfigurationException(
          "the server of " + shim.datastore() + " did not say what it is: " + trouble);
    }
    shim.require(facts);
    if (!trouble.isEmpty()) {
      throw new ConfigurationException("reads of " + shim.datastore() + " cannot wait: " + trouble);
    }
    return facts;
  }

  /**
   * Names may stand for others than before.
   *
   * @param isMade whether a view may have been made
   */
  void renamed(boolean isMade) {
    if (views != null) {
      views.forget(isMade);
    }
  }

  // Writes.

  /** Records the writes whose GTIDs came with a reply, in the current scope. */
  void gtids(String gtids) {
    if (session.isPreparing()) {
      return;
    }
    try {
      Flavor flavor = facts == null ? Flavor.MYSQL : facts.flavor();
      List<WriteId> writes = Positions.minted(flavor, gtids, shim.runs(), shim.datastore());
      if (!mayAssignNumbers && writes.stream().anyMatch(write -> !owns(write))) {
        trouble = FOREIGN;
        isReady = false;
      }
      record(writes);
      session.committed();
    } catch (NoGtidException unread) {
      shim.unsampled(String.valueOf(unread.getMessage()));
    }
  }

  private boolean owns(WriteId write) {
    if (facts == null || facts.isGroup()) {
      return true; // Members of a group number by its own name.
    }
    return facts.flavor() == Flavor.MARIADB
        ? write.key().endsWith("." + facts.serverId())
        : write.key().startsWith(facts.uuid());
  }

  private void record(List<WriteId> writes) {
    try {
      writes.forEach(Recording::recordWrite);
    } catch (ConfigurationException unscoped) {
      error = unscoped; // It may not reach the driver.
    }
  }

  /** Returns whether a call of functions may write; counts those of which nobody knows. */
  boolean mayWrite(String sql) {
    Set<String> names =
        facts == null ? Functions.called(sql) : Functions.called(sql, facts.flavor());
    names.removeAll(shim.readonlyFunctions());
    for (String name : names) {
      if (!Functions.isOfSequence(name)) {
        unknown(name);
        break; // A statement is counted once.
      }
    }
    return !names.isEmpty();
  }

  /**
   * Returns whether no reply shows what statements that read write by a view: the end of a
   * transaction may, and only a request has a use for it.
   */
  boolean mayHide(Set<Effect> effects) {
    Views seen = views;
    boolean isRead =
        effects.contains(Effect.READS)
            && !effects.contains(Effect.WRITES)
            && !effects.contains(Effect.CALLS);
    if (seen == null || !isRead || seen.listing().isEmpty()) {
      return false;
    }
    boolean isShown =
        seen.listing() != Listing.ANYTHING
            && (effects.contains(Effect.NAMES) || !session.transaction().isAutonomous());
    return !isShown && Scope.currentOrNull() != null;
  }

  /**
   * Adds that statements call something, where they name a view that may write.
   *
   * @throws SQLException if the connection is lost
   */
  void seeViews(List<QueryInfo> queries, Set<Effect> effects, Listing.Asked server)
      throws SQLException {
    Flavor flavor = Objects.requireNonNull(facts).flavor();
    for (QueryInfo query : queries) {
      if (Objects.requireNonNull(views)
          .mayWrite(query.getQuery(), flavor, shim.readonlyFunctions(), server)) {
        boolean unused = effects.add(Effect.CALLS);
      }
    }
  }

  private void unknown(String name) {
    Counts.count("unknown_function", shim.datastore());
    Counts.logOnce(
        "mysql_unknown_function",
        shim.datastore(),
        name,
        () ->
            "a statement to "
                + shim.datastore()
                + " calls "
                + name
                + "(), which may write: whether it did is asked after it. Where it only reads,"
                + " declare it by readonlyFunctions");
  }

  /** Returns whether the server can be asked for the position of a write that has none. */
  boolean canSample() {
    return facts != null
        && trouble.isEmpty()
        && facts.lacking().isEmpty()
        && facts.unminted().isEmpty();
  }

  /** Returns the question for the position of a write that has none; null where none helps. */
  @Nullable String sample() {
    if (facts == null || !trouble.isEmpty()) {
      shim.unsampled(trouble);
      return null;
    }
    if (!facts.unminted().isEmpty()) {
      uncovered(String.join("; ", facts.unminted()));
      return null;
    }
    if (!facts.lacking().isEmpty()) {
      shim.unsampled(String.join("; ", facts.lacking()));
      return null;
    }
    return SAMPLE.get(facts.flavor());
  }

  /**
   * Takes in the answer to {@link #sample}.
   *
   * @param isCertain whether something was written
   */
  void sampled(Map<String, String> row, boolean isCertain) {
    Facts here = Objects.requireNonNull(facts);
    boolean isSame = row.getOrDefault("server_id", "").equals(Long.toString(here.serverId()));
    boolean isReadOnly = !row.getOrDefault("read_only", "").equals("0");
    if (isSame && isReadOnly && shim.readsFrom() == ReadsFrom.REPLICA) {
      return; // A procedure that reads: a replica took no write.
    }
    if (isReadOnly || !isSame) {
      shim.unsampled("another server answered than the one that committed it");
      return;
    }
    if (here.flavor() == Flavor.MARIADB) {
      String gtid = row.getOrDefault("gtid", "");
      if (gtid.isEmpty()) {
        if (isCertain) { // Else it has written nothing.
          shim.unsampled("its session knows of none");
        }
      } else if (!gtid.equals(lastGtid)) {
        lastGtid = gtid;
        gtids(gtid);
      }
      return;
    }
    try {
      Lineage covered = Positions.covered(here.flavor(), row, shim.datastore());
      List<WriteId> own = covered.writes().stream().filter(this::owns).toList();
      if (own.isEmpty()) {
        shim.unsampled("its server has given none yet");
      }
      record(own);
    } catch (NoGtidException unnumbered) {
      uncovered("the server gives new writes no GTIDs: " + unnumbered.getMessage());
    }
  }

  /** Notes a write for which no position will ever stand, nor a later one of the primary. */
  void uncovered(String why) {
    Counts.count("uncovered_write", shim.datastore());
    Recording.markIncomplete(shim.datastore(), "in_doubt");
    Counts.logOnce(
        "mysql_uncovered",
        shim.datastore(),
        why,
        () ->
            "a write to "
                + shim.datastore()
                + " cannot be waited for, and its lineage is incomplete (in_doubt): "
                + why);
  }

  /**
   * Throws what recording could not, while the driver was at work.
   *
   * @throws ConfigurationException if a write had no scope, and that is an error
   */
  void raisePending() {
    ConfigurationException pending = error;
    error = null;
    if (pending != null) {
      throw pending;
    }
  }

  // Reads.

  /**
   * Ends a read from a snapshot that is older than its floor.
   *
   * @throws StaleSnapshotException unless such reads are answered all the same
   */
  void stale(Floor floor) {
    floor.failSnapshot(
        new StaleSnapshotException(
            "this connection to "
                + shim.datastore()
                + " reads from a snapshot that is older than what the barrier waited for: commit"
                + " or roll back its transaction before the read"),
        session::shows);
  }

  /** A reply that was not read to its end: nobody knows yet what its statement committed. */
  static final class Unread implements Supplier<Lineage> {
    private final Shim shim;
    private volatile boolean isEnded;

    Unread(Shim shim) {
      this.shim = shim;
    }

    /** The reply was read to its end, and its writes were recorded. */
    void end() {
      isEnded = true;
    }

    @Override
    public Lineage get() {
      if (isEnded) {
        return Lineage.empty();
      }
      String datastore = shim.datastore();
      Counts.count("incomplete", datastore);
      Counts.logOnce(
          "mysql_unread",
          datastore,
          "",
          () ->
              "a lineage was used before the reply of a write to "
                  + datastore
                  + " was read to its end, and is incomplete (in_doubt): read all rows and results"
                  + " first, or close the statement");
      return Lineage.empty().marked(new Incomplete(datastore, "in_doubt"));
    }
  }
}
