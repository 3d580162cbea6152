package io.antipode.mysql;

import java.sql.SQLException;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The names of the views of one server, for all connections that reach it alike: no other name of a
 * statement can be a view's. Thread-safe.
 */
final class Listing {
  /** Of a server where any name may be a view's, because nobody asks. */
  static final Listing ANYTHING = new Listing();

  private static final int MOST = 1_023;

  /** The views that a user may read. */
  private static final String LISTED =
      "SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
          + " ('information_schema', 'mysql', 'performance_schema', 'sys') LIMIT "
          + (MOST + 1);

  private volatile Known known = new Known(null, 0, false);

  /**
   * What was answered.
   *
   * @param names in small letters; null for any
   * @param isFresh whether nobody has to ask until it is old
   */
  private record Known(@Nullable Set<String> names, long askedNs, boolean isFresh) {}

  /** Whom is asked. */
  @FunctionalInterface
  interface Asked {
    /** Returns the rows of a question. */
    List<Map<String, String>> ask(String sql) throws SQLException;
  }

  /** Returns whether it is to be asked for. */
  boolean isStale() {
    return this != ANYTHING && !isFresh(known);
  }

  private static boolean isFresh(Known now) {
    return now.isFresh && System.nanoTime() - now.askedNs < Views.FRESH.toNanos();
  }

  /** Returns whether nobody has to ask, since the server has none. */
  boolean isEmpty() {
    Known now = known;
    return isFresh(now) && now.names != null && now.names.isEmpty();
  }

  /** Returns whether a name may be a view's, in whatever schema. */
  boolean has(String name) {
    Set<String> names = known.names;
    return names == null || names.contains(table(name));
  }

  /** Returns a name without its schema and quotes, in small letters. */
  static String table(String name) {
    return Views.unquoted(name.substring(name.lastIndexOf('.') + 1)).toLowerCase(Locale.ROOT);
  }

  /** A view may have been made. */
  void forget() {
    known = new Known(known.names, 0, false);
  }

  /**
   * Asks for it.
   *
   * @throws SQLException if the connection is lost
   */
  void ask(Asked server) throws SQLException {
    Set<String> names = null;
    try {
      List<Map<String, String>> rows = server.ask(LISTED);
      if (rows.size() <= MOST) {
        names = new HashSet<>();
        for (Map<String, String> row : rows) {
          names.add(table(row.getOrDefault("name", "")));
        }
      }
    } catch (SQLException error) {
      if (!Errors.isRefusal(error)) {
        throw error;
      }
    }
    known = new Known(names, System.nanoTime(), true);
  }
}
