package io.antipode.mysql;

import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.HeldCall;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.mysql.Session.Verdict;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What is asked on the connection that reads, before a read that a floor holds back.
 *
 * <p>Positions are asked for without touching a table. A search for the records of promises is a
 * read like the application's own, and must not be the one that opens the snapshot from which that
 * reads: what is committed later would never show there.
 */
final class ReadWait {
  private static final Map<Flavor, String> ISOLATION =
      Map.of(
          Flavor.MYSQL,
          "SELECT @@SESSION.transaction_isolation AS level",
          Flavor.MARIADB,
          "SELECT @@SESSION.tx_isolation AS level");

  /**
   * Whether nothing that a write may set off reads, and whether what locks its tables can read no
   * others: through a view, or of the server's own. Who may not see triggers is shown none.
   */
  private static final String UNTRIGGERED =
      "SELECT NOT EXISTS (SELECT 1 FROM information_schema.TRIGGERS"
          + " WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys'))"
          + " AND NOT EXISTS (SELECT 1 FROM information_schema.ROUTINES"
          + " WHERE ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys'))"
          + " AND (EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES"
          + " WHERE PRIVILEGE_TYPE = 'TRIGGER')"
          + " OR NOT EXISTS (SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN"
          + " ('information_schema', 'performance_schema', 'mysql', 'sys') AND SCHEMA_NAME NOT IN"
          + " (SELECT TABLE_SCHEMA FROM information_schema.SCHEMA_PRIVILEGES"
          + " WHERE PRIVILEGE_TYPE = 'TRIGGER'))) AS untriggered,"
          + " NOT EXISTS (SELECT 1 FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
          + " ('information_schema', 'performance_schema', 'mysql', 'sys'))"
          + " AND COALESCE(DATABASE(), '') NOT IN ('information_schema', 'mysql', 'sys')"
          + " AS viewless";

  /** What both drivers say of it. */
  private static final HeldCall.Interrupted INTERRUPTED = new HeldCall.Interrupted("70100", 1317);

  private final MySqlShim shim;
  private final Tap tap;
  private final Session session;
  private final Link link;

  /** The call that waits. */
  private final HeldCall call;

  private @Nullable Observation seen;

  /** Whether reads of the open transaction see what was committed last. */
  private boolean renews;

  ReadWait(MySqlShim shim, Tap tap, Link link, HeldCall call) {
    this.shim = shim;
    this.tap = tap;
    this.session = tap.session();
    this.link = link;
    this.call = call;
  }

  /**
   * Holds a read back until its floor is met on this connection.
   *
   * @throws io.antipode.barrier.StaleSnapshotException if the open transaction reads from an older
   *     snapshot
   * @throws io.antipode.barrier.UnmetException if the floor is not met in time, or never
   * @throws SQLTimeoutException if the statement's query timeout is over
   * @throws SQLException if the statement was cancelled
   * @throws Exception what the driver throws, where there was time left
   */
  void hold(Floor floor, Verdict verdict) throws Exception {
    long untilNs = System.nanoTime() + floor.pollTimeout().toNanos();
    link.setTimeout(floor.pollTimeout());
    try {
      if (verdict != Verdict.HOLD) {
        renews = readsCommitted();
        if (!renews && verdict == Verdict.OLD_SNAPSHOT) {
          tap.stale(floor);
          return;
        }
      }
      call.await(floor, most -> polled(floor, most), INTERRUPTED);
      boolean isUnseen = verdict == Verdict.TRIGGERED || verdict == Verdict.LOCKED;
      if (isUnseen && !renews && !isUntriggered(verdict)) {
        tap.stale(floor);
      }
    } catch (SQLException error) {
      if (System.nanoTime() >= untilNs) {
        floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      }
      throw error;
    }
    if (!floor.isServed()) {
      session.passed(floor, seen, verdict != Verdict.HOLD);
    }
  }

  private Observation polled(Floor floor, Duration most) throws SQLException {
    Observation shown = look(floor, most);
    seen = shown;
    return shown;
  }

  private boolean readsCommitted() throws SQLException {
    String sql = Objects.requireNonNull(ISOLATION.get(link.facts().flavor()));
    return session.transaction().readsCommitted(link.rows(sql).get(0).getOrDefault("level", ""));
  }

  /** Asked once the floor is met, for the server may take the snapshot here. */
  private boolean isUntriggered(Verdict verdict) throws SQLException {
    Map<String, String> row = link.rows(UNTRIGGERED).get(0);
    boolean isViewless = row.getOrDefault("viewless", "").equals("1");
    return row.getOrDefault("untriggered", "").equals("1")
        && (verdict == Verdict.TRIGGERED || isViewless);
  }

  private Observation look(Floor floor, Duration most) throws SQLException {
    List<WriteId> writes = floor.writes();
    List<Promise> promises = floor.promises();
    if (promises.isEmpty() || renews || session.transaction().isAutonomous()) {
      return shim.look(link, writes, promises, most);
    }
    if (session.transaction().endsByItself()) {
      return link.aside(session, () -> shim.look(link, writes, promises, most));
    }
    if (readsCommitted()) {
      return shim.look(link, writes, promises, most);
    }
    Observation shown = shim.look(link, writes, List.of(), most);
    if (writes.stream().anyMatch(write -> shown.status(write) != Status.VISIBLE)) {
      return shown; // Records are asked for once the writes are there.
    }
    Observation found = shim.look(link, writes, promises, most);
    session.snapshotTaken();
    if (promises.stream().anyMatch(each -> found.status(each) == Status.NOT_YET)) {
      tap.stale(floor);
    }
    return found;
  }
}
