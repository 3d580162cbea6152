package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Status;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Promise;
import io.antipode.runtime.Time;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

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

  /**
   * Returns what records a promise, unless it has a record; it changes two rows if that differs.
   */
  static String recording(String table, Promise promise, boolean isFulfilled, long untilS) {
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
    return Table2.statuses(promises, rows);
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
}
