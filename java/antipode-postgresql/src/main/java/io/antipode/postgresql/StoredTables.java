package io.antipode.postgresql;

import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** The tables of one pool whose rows have stored lineages. Thread-safe. */
final class StoredTables {
  /** How long it is remembered what tables are: others may drop them and make them anew. */
  private static final Duration FRESH = Duration.ofMinutes(1);

  /** How much of a statement a line of the log names. */
  private static final int LONGEST_NAME = 40;

  private final Set<String> names;
  private final String datastore;
  private volatile Described described = new Described(List.of(), 0);

  /** What servers said, and when they were asked. */
  private record Described(List<StoredTable> tables, long askedNs) {}

  /**
   * Knows their names; no server was asked yet.
   *
   * @param names {@code table} or {@code schema.table}, as SQL has them without quotes
   */
  StoredTables(Set<String> names, String datastore) {
    this.names = Set.copyOf(names);
    this.datastore = datastore;
  }

  Set<String> names() {
    return names;
  }

  /** Returns what they are; empty as long as no server was asked. */
  List<StoredTable> described() {
    return described.tables;
  }

  /**
   * Makes sure, once in a while, that they can keep lineages.
   *
   * @throws io.antipode.ConfigurationException if some cannot; says what to run
   * @throws SQLException as the driver does
   */
  void check(Link link) throws SQLException {
    Described known = described;
    long nowNs = System.nanoTime();
    if (!known.tables.isEmpty() && nowNs - known.askedNs <= FRESH.toNanos()) {
      return;
    }
    List<StoredTable> found = new ArrayList<>();
    for (String name : names) {
      found.add(StoredTable.described(link, name, datastore));
    }
    described = new Described(List.copyOf(found), nowNs);
  }

  /** Some may be made anew. */
  void forget() {
    Described known = described;
    described = new Described(known.tables, known.askedNs - FRESH.toNanos());
  }

  /** Counts what reads rows, and does not show which. */
  void countUnread(String what) {
    count("unread_lineage", what, "does not show what its values depend on elsewhere");
  }

  /** Counts what may write rows, and stores no lineage with them. */
  void countUnstored(String what) {
    count("unstored_lineage", what, "stores no lineage");
  }

  private void count(String metric, String what, String why) {
    String start = what.substring(0, Math.min(what.length(), LONGEST_NAME));
    Counts.count(metric, datastore);
    Counts.logOnce(metric, datastore, start, () -> start + " on " + datastore + " " + why);
  }
}
