package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Status;
import io.antipode.lineage.Promise;
import io.antipode.runtime.Time;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The table of promises, and what is said to it. Which record of a promise comes first stays. */
final class Records {
  /** A statement changed a row that was there: the record says the opposite. */
  static final int OPPOSITE = 2;

  /** How many records whose time is over go at once. */
  private static final int SWEEP = 32;

  private Records() {}

  /** Returns the table, with its schema. */
  static String table(String database) {
    return quoted(database) + ".`antipode_promises`";
  }

  static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  static String ddl() {
    return "CREATE TABLE IF NOT EXISTS `antipode_promises` (id BINARY(16) NOT NULL PRIMARY KEY,"
        + " fulfilled BOOLEAN NOT NULL, refused BOOLEAN NOT NULL DEFAULT FALSE,"
        + " until_s BIGINT UNSIGNED NOT NULL, KEY (until_s)) ENGINE=InnoDB COMMENT 'antipode 1'";
  }

  /**
   * Returns what records a promise, unless it has a record; it changes two rows if that differs.
   */
  static String recording(String table, Promise promise, boolean isFulfilled, Duration life) {
    long untilS = Time.now().getEpochSecond() + life.plusMillis(999).toSeconds();
    return "INSERT INTO "
        + table
        + " (id, fulfilled, until_s) VALUES (X'"
        + promise.id()
        + "', "
        + isFulfilled
        + ", "
        + untilS
        + ") ON DUPLICATE KEY UPDATE refused = refused ^ "
        + (isFulfilled ? "(NOT fulfilled)" : "fulfilled");
  }

  /**
   * Returns what the server has of promises, as it is committed.
   *
   * @throws RefusedException if it answers with an error
   * @throws ConfigurationException if this user may not read the table
   */
  static Map<Promise, Status> of(Link link, String table, Collection<Promise> promises)
      throws RefusedException {
    String ids =
        promises.stream().map(each -> "X'" + each.id() + "'").collect(Collectors.joining(", "));
    List<Map<String, String>> rows;
    try {
      rows =
          link.ask("SELECT HEX(id) AS id, fulfilled FROM " + table + " WHERE id IN (" + ids + ")");
    } catch (RefusedException error) {
      if (Errors.NO_TABLE.contains(error.number())) {
        return Map.of(); // It may come as all writes do.
      }
      if (Errors.DENIED.contains(error.number())) {
        throw new ConfigurationException(
            "this user may not ask for promises: GRANT SELECT ON " + table);
      }
      throw error;
    }
    Map<String, Boolean> fulfilled = new HashMap<>();
    for (Map<String, String> row : rows) {
      boolean isFulfilled = List.of("1", "true").contains(row.getOrDefault("fulfilled", ""));
      fulfilled.put(row.getOrDefault("id", "").toLowerCase(Locale.ROOT), isFulfilled);
    }
    Map<Promise, Status> found = new HashMap<>();
    for (Promise promise : promises) {
      @Nullable Boolean isFulfilled = fulfilled.get(promise.id());
      if (isFulfilled != null) {
        found.put(promise, isFulfilled ? Status.VISIBLE : Status.ABANDONED);
      }
    }
    return found;
  }

  /** Deletes a batch of records whose time is over; waits for none that somebody else holds. */
  static void sweep(Link link, String table) throws SQLException {
    link.execute("START TRANSACTION");
    List<byte[]> ids =
        link.query(
            "SELECT id FROM "
                + table
                + " FORCE INDEX (until_s) WHERE until_s < ? ORDER BY until_s LIMIT "
                + SWEEP
                + " FOR UPDATE SKIP LOCKED",
            row -> row.getBytes("id"),
            Time.now().getEpochSecond());
    for (byte[] id : ids) {
      int ignored = link.update("DELETE FROM " + table + " WHERE id = ?", id);
    }
    link.execute("COMMIT");
  }

  /** Returns what an error says about the table; the error itself where it says nothing. */
  static Exception explained(String datastore, SQLException error) {
    if (Errors.NO_TABLE.contains(error.getErrorCode())) {
      return new ConfigurationException(
          datastore + " has no table for its promises; run: " + ddl() + ";");
    }
    if (Errors.DENIED.contains(error.getErrorCode())) {
      return new ConfigurationException(
          datastore
              + " does not let this user write to its table of promises: who fulfils promises needs"
              + " INSERT, SELECT, UPDATE and DELETE there");
    }
    return error;
  }
}
