package io.antipode.postgresql;

import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** The tables of one pool whose rows have stored lineages. Thread-safe. */
final class StoredTables {
  /** How long it is remembered what tables are: others may drop them and make them anew. */
  private static final Duration FRESH = Duration.ofMinutes(1);

  /** How much of a statement a line of the log names. */
  private static final int LONGEST_NAME = 40;

  private final Set<String> names;
  private final String datastore;

  /** The names of views that show rows of some tables, over any number of other views. */
  private static final String VIEWS =
      """
      WITH RECURSIVE spread AS (
        SELECT to_regclass(n)::oid AS oid FROM unnest(ARRAY[%s]) AS n
        UNION SELECT r.ev_class FROM spread s JOIN pg_depend d ON d.refobjid = s.oid
        AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite r ON r.oid = d.objid
      )
      SELECT c.relname AS name FROM spread s JOIN pg_class c ON c.oid = s.oid
      WHERE c.relkind IN ('v', 'm')
      """;

  private volatile Described described = new Described(List.of(), 0);
  private volatile Viewed viewed = new Viewed(Set.of(), 0, false);

  /** The names of views, and when a server was asked, if it was. */
  private record Viewed(Set<String> names, long askedNs, boolean isAsked) {}

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

  /** Finds out which views show their rows, once in a while. */
  void checkViews(Link link) {
    Viewed known = viewed;
    long nowNs = System.nanoTime();
    if (known.isAsked && nowNs - known.askedNs <= FRESH.toNanos()) {
      return;
    }
    Set<String> found = known.names;
    try {
      String literals =
          names.stream()
              .map(name -> "'" + name.replace("'", "''") + "'")
              .collect(Collectors.joining(", "));
      found =
          link.ask(VIEWS.replace("%s", literals)).stream()
              .map(row -> row.getOrDefault("name", ""))
              .collect(Collectors.toUnmodifiableSet());
    } catch (SQLException refused) {
      // What this user may not see it does not read.
    }
    viewed = new Viewed(found, nowNs, true);
  }

  /** Returns which views a text names that show their rows, for all that is known. */
  Mentions views(String sql) {
    Set<String> views = viewed.names;
    return views.isEmpty() ? Mentions.NOTHING : Mentions.of(sql, views);
  }

  /** Some may be made anew. */
  void forget() {
    Viewed views = viewed;
    viewed = new Viewed(views.names, views.askedNs, false);
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
