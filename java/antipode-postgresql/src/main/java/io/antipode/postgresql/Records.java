package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Status;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Promise;
import io.antipode.postgresql.Link.State;
import io.antipode.runtime.Time;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The table of promises, and what is said to it. Which record of a promise comes first stays. */
final class Records {
  static final List<String> DDL =
      List.of(
          "CREATE TABLE IF NOT EXISTS antipode_promises (id uuid PRIMARY KEY, fulfilled boolean NOT"
              + " NULL, until_s bigint NOT NULL)",
          "CREATE INDEX IF NOT EXISTS antipode_promises_until ON antipode_promises (until_s)");

  /**
   * Whether the table may be read: asked where an error would end the application's transaction.
   */
  private static final String MAY_ASK =
      "SELECT coalesce(has_table_privilege(to_regclass('antipode_promises'), 'select'), false) AS"
          + " may";

  private Records() {}

  /**
   * Returns what records a promise, unless it has a record; its one row is the record that there is
   * in the end.
   */
  static String recording(Promise promise, boolean isFulfilled, long untilS) {
    return "INSERT INTO antipode_promises AS p (id, fulfilled, until_s) VALUES ('"
        + promise.id()
        + "', "
        + isFulfilled
        + ", "
        + untilS
        + ") ON CONFLICT (id) DO UPDATE SET until_s = p.until_s RETURNING p.fulfilled AS fulfilled";
  }

  /** Returns what deletes a batch of records whose time is over; it waits for nobody's lock. */
  static String sweeping() {
    return "DELETE FROM antipode_promises WHERE id IN (SELECT id FROM antipode_promises"
        + " WHERE until_s < "
        + Time.now().getEpochSecond()
        + " ORDER BY until_s LIMIT 32 FOR UPDATE SKIP LOCKED)";
  }

  /**
   * Returns what the server has of promises, as it is committed.
   *
   * @throws ConfigurationException if this user may not read the table
   * @throws SQLException as the driver does
   */
  static Map<Promise, Status> of(Link link, Collection<Promise> promises) throws SQLException {
    String ids =
        promises.stream().map(each -> "'" + each.id() + "'").collect(Collectors.joining(", "));
    if (link.state() == State.OPEN
        && !link.ask(MAY_ASK).get(0).getOrDefault("may", "").equals("t")) {
      return Map.of();
    }
    try {
      return Table2.statuses(
          promises,
          link.ask("SELECT id, fulfilled FROM antipode_promises WHERE id IN (" + ids + ")"));
    } catch (SQLException error) {
      return switch (Errors.fault(error)) {
        case NO_TABLE -> Map.of(); // It may come as all writes do.
        case DENIED ->
            throw new ConfigurationException(
                "this user may not ask for promises: GRANT SELECT ON antipode_promises");
        default -> throw error;
      };
    }
  }
}
