package io.antipode.mysql;

import io.antipode.ConfigurationException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Whether servers store lineages with the rows of tables; and the keys of these. Thread-safe. */
final class Migrated {
  private static final String COMMENT = "antipode 1";

  private final Tables tables;
  private final String datastore;
  private static final String VIEWS =
      "SELECT TABLE_NAME AS name, VIEW_DEFINITION AS made_of FROM information_schema.VIEWS"
          + " WHERE TABLE_SCHEMA NOT IN"
          + " ('information_schema', 'mysql', 'performance_schema', 'sys') LIMIT 1024";

  private final Set<String> checked = ConcurrentHashMap.newKeySet();
  private volatile Viewed viewed = new Viewed(null, 0, false);
  private final Map<String, Map<String, String>> keys = new ConcurrentHashMap<>();

  /**
   * The views that show rows of the tables.
   *
   * @param mention finds them in a statement; null for none
   * @param isAsked whether a server was asked, and nobody made a view since
   */
  private record Viewed(@Nullable Pattern mention, long askedNs, boolean isAsked) {}

  Migrated(Tables tables, String datastore) {
    this.tables = tables;
    this.datastore = datastore;
  }

  Tables tables() {
    return tables;
  }

  /** Returns the columns of each table's primary key, and their character sets. */
  Map<String, Map<String, String>> keys() {
    return keys;
  }

  boolean isChecked(Facts facts) {
    return checked.contains(facts.server());
  }

  /**
   * Makes sure that a server's tables can keep lineages.
   *
   * @throws ConfigurationException if some cannot; says what to run
   * @throws SQLException as the driver does
   */
  void check(Link link, Facts facts) throws SQLException {
    List<String> lacking = new ArrayList<>();
    for (String table : tables.names()) {
      if (!hasColumn(link, table)) {
        lacking.add(table);
      }
      keys.put(table, key(link, table));
    }
    if (!lacking.isEmpty()) {
      throw new ConfigurationException(
          "'"
              + datastore
              + "' cannot store lineages with "
              + String.join(", ", lacking)
              + ": it lacks the column '"
              + Tables.COLUMN
              + "'. The library changes no schema on its own: let `python -m antipode_shims.mysql"
              + " migration "
              + String.join(" ", lacking)
              + "` print what to run");
    }
    checked.add(facts.server());
  }

  /** Returns whether it is to be asked which views show their rows, which takes a snapshot. */
  boolean areViewsDue() {
    Viewed known = viewed;
    return !known.isAsked || System.nanoTime() - known.askedNs >= Views.FRESH.toNanos();
  }

  /**
   * Finds out which views show their rows, over any number of other views. One of which this user
   * may not see what it is made of may show them.
   *
   * @throws SQLException if the connection is lost
   */
  void checkViews(Link link) throws SQLException {
    Map<String, String> views = new LinkedHashMap<>();
    try {
      for (Map<String, String> row : link.rows(VIEWS)) {
        views.put(row.getOrDefault("name", ""), row.getOrDefault("made_of", ""));
      }
    } catch (SQLException error) {
      if (!Errors.isRefusal(error)) {
        throw error;
      }
    }
    Set<String> shown = new HashSet<>();
    tables.names().forEach(name -> shown.add(Listing.table(name)));
    Set<String> found = new HashSet<>();
    for (boolean isMore = true; isMore; ) {
      isMore = false;
      for (Map.Entry<String, String> view : views.entrySet()) {
        if (!found.contains(view.getKey()) && reads(view.getValue(), shown)) {
          found.add(view.getKey());
          shown.add(Listing.table(view.getKey()));
          isMore = true;
        }
      }
    }
    Pattern mention = found.isEmpty() ? null : Tables.mention(found);
    viewed = new Viewed(mention, System.nanoTime(), true);
  }

  private static boolean reads(String madeOf, Set<String> shown) {
    return madeOf.isEmpty()
        || Views.names(madeOf).stream().anyMatch(name -> shown.contains(Listing.table(name)));
  }

  /** A view may have been made. */
  void forgetViews() {
    viewed = new Viewed(viewed.mention, 0, false);
  }

  /** Returns whether a statement may be about the tables, or about a view that shows their rows. */
  boolean areMentioned(String sql) {
    Pattern views = viewed.mention;
    return tables.areMentioned(sql) || (views != null && views.matcher(sql).find());
  }

  private static boolean hasColumn(Link link, String table) throws SQLException {
    List<Map<String, String>> rows =
        link.rows(
            "SELECT COLUMN_COMMENT AS said FROM information_schema.COLUMNS WHERE "
                + place("", table)
                + " AND COLUMN_NAME = '"
                + Tables.COLUMN
                + "'");
    return rows.size() == 1 && COMMENT.equals(rows.get(0).get("said"));
  }

  private static Map<String, String> key(Link link, String table) throws SQLException {
    Map<String, String> key = new LinkedHashMap<>();
    for (Map<String, String> row :
        link.rows(
            "SELECT u.COLUMN_NAME AS name, c.CHARACTER_SET_NAME AS charset"
                + " FROM information_schema.KEY_COLUMN_USAGE u JOIN information_schema.COLUMNS c"
                + " ON c.TABLE_SCHEMA = u.TABLE_SCHEMA AND c.TABLE_NAME = u.TABLE_NAME"
                + " AND c.COLUMN_NAME = u.COLUMN_NAME WHERE "
                + place("u.", table)
                + " AND "
                + place("c.", table)
                + " AND u.CONSTRAINT_NAME = 'PRIMARY' ORDER BY u.ORDINAL_POSITION")) {
      key.put(row.getOrDefault("name", ""), row.getOrDefault("charset", ""));
    }
    return key;
  }

  private static String place(String of, String table) {
    int dot = table.lastIndexOf('.');
    String schema = dot < 0 ? "DATABASE()" : Tombstones.literal(table.substring(0, dot));
    return of
        + "TABLE_SCHEMA = "
        + schema
        + " AND "
        + of
        + "TABLE_NAME = "
        + Tombstones.literal(table.substring(dot + 1));
  }
}
