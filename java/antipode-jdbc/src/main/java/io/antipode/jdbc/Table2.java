package io.antipode.jdbc;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.PromiseAbandonedException;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.SqlShim.Found;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Values with their lineages, and records of promises, in tables of the library's own, over
 * connections of its own. What their statements are, each database says.
 *
 * @param <L> its connections
 */
public abstract class Table2<L extends OwnConnection> {
  private static final Logger LOG = Logger.getLogger("antipode");

  /** The longest that making a connection may take; the first one of a process takes its time. */
  private static final Duration CONNECT = Duration.ofSeconds(5);

  private static final Duration SWEEP = Duration.ofMillis(500);

  /** At one of how many fulfilments old records are deleted. */
  private static final int SWEEP_EVERY = 16;

  private static final String OWN = "own";
  private static final Set<String> TRUE = Set.of("1", "t", "true");

  private final SqlShim shim;
  private final Deque<L> idle = new ConcurrentLinkedDeque<>();
  private volatile boolean isClosed;

  /**
   * A row.
   *
   * @param texts the lineages stored with the value, with commas between; null where there are none
   * @param isOwn whether they are those of the value
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares rows.
  public record Row(byte[] value, @Nullable String texts, boolean isOwn) {}

  /** What an error of the driver's says. */
  public enum Fault {
    /** There is no such table. */
    NO_TABLE,
    /** There is no such column. */
    NO_COLUMN,
    /** This user may not do that. */
    DENIED,
    /** The server answered, and did nothing. */
    REFUSED,
    /** Nobody knows what the server did. */
    LOST
  }

  /** What a server says of itself cannot be read. */
  public static final class Refused extends SQLException {
    private static final long serialVersionUID = 1L;

    /** Says why. */
    public Refused(Exception cause) {
      super(cause.getMessage(), cause);
    }
  }

  /** Keeps the values of a shim. */
  protected Table2(SqlShim shim) {
    this.shim = shim;
  }

  // What each database says.

  /**
   * Connects, and finds out what is needed for values.
   *
   * @throws Refused if the server does not say it
   */
  protected abstract L open(Duration timeout) throws SQLException;

  /** Connects for one statement. */
  protected abstract L connect(Duration timeout) throws SQLException;

  /** Replaces a value and its lineage: one statement. */
  protected abstract void put(L link, String key, byte[] value, String lineage) throws SQLException;

  /** Deletes a value and leaves its lineage; the tombstone first: absence is never bare. */
  protected abstract void remove(L link, String key, String lineage) throws SQLException;

  /** Returns what there is of a key; null for nothing. */
  protected abstract @Nullable Row row(L link, String key) throws SQLException;

  /** Returns the lineage that a deletion left; null for none. */
  protected abstract @Nullable String buried(L link, String key) throws SQLException;

  /** Enters what a connection committed just now; returns the lineage with it. */
  protected abstract Lineage written(L link, Lineage base);

  /** Returns a position that covers what a connection read, or the mark that there is none. */
  protected abstract Lineage covering(L link) throws SQLException;

  /** Polls once for writes and promises, on a connection that reads. */
  protected abstract Observation look(L link, Floor floor, Duration most);

  /**
   * Records what became of a promise, unless it has a record.
   *
   * @param untilS until when the record is kept
   * @return whether its record says so
   */
  protected abstract boolean isRecorded(
      Connection connection, Promise promise, boolean isFulfilled, long untilS) throws SQLException;

  /** Deletes a batch of records whose time is over; waits for none that somebody else holds. */
  protected abstract void sweep(L link) throws SQLException;

  /** Returns whether the next statement of a connection commits on its own. */
  protected boolean isAutonomous(Connection connection) throws SQLException {
    return connection.getAutoCommit();
  }

  /** Returns what an error says. */
  protected abstract Fault fault(SQLException error);

  /** Returns the statements that make the tables. */
  protected abstract List<String> ddl();

  // Writes.

  final Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws SQLException {
    Recording.recordStored(null);
    String text = LineageText.stored(lineage);
    if (fulfils == null) {
      return commit(lineage, link -> put(link, key, value, text));
    }
    Work<L> work =
        link -> {
          record(link.connection(), fulfils);
          put(link, key, value, text);
        };
    Lineage written = commit(lineage, inTransaction(work));
    sweep();
    return written;
  }

  final Lineage delete(String key, Lineage lineage) throws SQLException {
    Recording.recordStored(null);
    String text = LineageText.stored(lineage);
    return commit(lineage, inTransaction(link -> remove(link, key, text)));
  }

  private interface Work<L> {
    /** Does it; a failure is distinguished from one that left no doubt by {@link Undone}. */
    void run(L link) throws SQLException;
  }

  /** What failed before anything could be committed. */
  private static final class Undone extends SQLException {
    private static final long serialVersionUID = 1L;

    Undone(SQLException cause) {
      super(cause);
    }
  }

  private Work<L> inTransaction(Work<L> work) {
    return link -> {
      try {
        link.execute("START TRANSACTION");
        work.run(link);
      } catch (SQLException error) {
        rollBack(link);
        throw new Undone(error);
      } catch (RuntimeException error) {
        rollBack(link);
        throw error;
      }
      link.execute("COMMIT");
    };
  }

  private void rollBack(L link) {
    try {
      link.execute("ROLLBACK");
    } catch (SQLException error) {
      link.close(); // The server rolls back.
    }
  }

  private Lineage commit(Lineage base, Work<L> work) throws SQLException {
    L link = take(null);
    try {
      work.run(link);
      return written(link, base);
    } catch (Undone error) {
      throw explained(link, (SQLException) Objects.requireNonNull(error.getCause()));
    } catch (SQLException error) {
      if (fault(error) == Fault.LOST) {
        Recording.markIncomplete(shim.datastore(), "in_doubt");
      }
      throw explained(link, error);
    } finally {
      release(link);
    }
  }

  /** Returns the error to throw; closes a connection that it broke. */
  private SQLException explained(L link, SQLException error) {
    Fault fault = fault(error);
    if (fault == Fault.NO_TABLE || fault == Fault.NO_COLUMN) {
      throw new ConfigurationException(
          shim.datastore()
              + " lacks a table or column of Table 2 ("
              + error.getMessage()
              + "); run what is missing of: "
              + String.join("; ", ddl()));
    }
    if (fault == Fault.LOST) {
      link.close();
    }
    return error;
  }

  // Reads.

  final Found read(String key) throws Exception {
    StaleRead stale = new StaleRead();
    @Nullable Floor floor = Floor.current(shim, null, stale);
    L link = take(floor);
    try {
      if (floor != null) {
        floor.hold(shim, most -> look(link, floor, most));
        link.setTimeout(shim.timeout());
      }
      Row row = row(link, key);
      Lineage stored =
          row == null
              ? LineageText.stored(shim.datastore(), buried(link, key))
              : beside(shim.datastore(), row);
      stale.answered();
      return new Found(row == null ? null : row.value(), stored.merge(covering(link)));
    } catch (SQLException error) {
      throw explained(link, error);
    } catch (UnreachableException error) {
      link.close();
      throw error;
    } finally {
      release(link);
    }
  }

  private static Lineage beside(String datastore, Row row) {
    Kept kept = kept(datastore, row.texts(), row.isOwn());
    if (!kept.match.equals(OWN)) {
      Counts.count(kept.match, datastore);
    }
    return kept.lineage;
  }

  /**
   * What lies with a value.
   *
   * @param match how it and the value match
   */
  public record Kept(Lineage lineage, String match) {}

  /** Returns what lies with a value; nothing with one that a plain client wrote or changed. */
  public static Kept kept(String datastore, @Nullable String texts, boolean isOwn) {
    if (texts == null) {
      return new Kept(Lineage.empty(), "companion_absent");
    }
    return isOwn ? new Kept(stored(datastore, texts), OWN) : new Kept(Lineage.empty(), "foreign");
  }

  /** Returns the lineage of the texts stored with a value. */
  public static Lineage stored(String datastore, String texts) {
    Lineage lineage = Lineage.empty();
    for (String text : texts.split(",", -1)) {
      lineage = lineage.merge(LineageText.stored(datastore, text));
    }
    return lineage;
  }

  // Promises.

  final void fulfil(Connection connection, Promise promise) throws SQLException {
    if (isAutonomous(connection)) {
      throw new ConfigurationException(
          "a promise is fulfilled in the transaction of its data: setAutoCommit(false) first");
    }
    record(connection, promise);
    sweep();
  }

  private void record(Connection connection, Promise promise) throws SQLException {
    boolean isFulfilled;
    try {
      isFulfilled = isRecorded(connection, promise, true, untilS(promise));
    } catch (SQLException error) {
      refuse(error);
      throw error;
    }
    if (!isFulfilled) {
      throw new PromiseAbandonedException(promise);
    }
  }

  private static long untilS(Promise promise) {
    return Time.now().getEpochSecond() + SqlShim.life(promise).plusMillis(999).toSeconds();
  }

  /**
   * Says what an error says about the table of promises.
   *
   * @throws ConfigurationException if it says something
   */
  private void refuse(SQLException error) {
    Fault fault = fault(error);
    if (fault == Fault.NO_TABLE) {
      throw new ConfigurationException(
          shim.datastore()
              + " has no table for its promises; run what is missing of: "
              + String.join("; ", ddl()));
    }
    if (fault == Fault.DENIED) {
      throw new ConfigurationException(
          shim.datastore()
              + " does not let this user write to its table of promises: who fulfils promises needs"
              + " INSERT, SELECT, UPDATE and DELETE there");
    }
  }

  final boolean abandon(Promise promise, Duration timeout) {
    try (L link = connect(timeout)) {
      return isRecorded(link.connection(), promise, false, untilS(promise));
    } catch (SQLException error) {
      refuse(error);
      // Somebody holds the record for too long, or no writes are taken.
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  /** Deletes records whose time is over, now and then; what fails is left. */
  private void sweep() {
    if (!shim.canAbandon() || ThreadLocalRandom.current().nextInt(SWEEP_EVERY) != 0) {
      return;
    }
    try (L link = open(SWEEP)) {
      sweep(link);
    } catch (SQLException error) {
      LOG.log(Level.FINE, error, () -> "old promises of " + shim.datastore() + " are not swept");
    }
  }

  /**
   * Returns what became of promises.
   *
   * @param rows records, of which each has {@code id} and {@code fulfilled}
   */
  public static Map<Promise, Status> statuses(
      Collection<Promise> promises, List<Map<String, String>> rows) {
    Map<String, Boolean> fulfilled = new HashMap<>();
    for (Map<String, String> row : rows) {
      String id = row.getOrDefault("id", "").replace("-", "").toLowerCase(Locale.ROOT);
      fulfilled.put(id, TRUE.contains(row.getOrDefault("fulfilled", "")));
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

  // Connections.

  private L take(@Nullable Floor floor) throws SQLException {
    Duration most = floor == null ? shim.timeout() : floor.pollTimeout();
    for (L link = idle.poll(); link != null; link = idle.poll()) {
      link.setTimeout(most);
      if (link.isAlive(most)) {
        return link;
      }
      link.close();
    }
    if (isClosed) {
      throw new SQLException("the shim of " + shim.datastore() + " is closed");
    }
    try {
      L link = open(most.compareTo(CONNECT) < 0 || floor != null ? most : CONNECT);
      link.setTimeout(most);
      return link;
    } catch (Refused error) {
      throw error;
    } catch (SQLException error) {
      if (floor != null) {
        floor.expire(new UnreachableException(String.valueOf(error.getMessage()), error));
      }
      throw error;
    }
  }

  private void release(L link) {
    link.release();
    if (isClosed || link.isClosed()) {
      link.close();
    } else {
      idle.push(link);
    }
  }

  final void close() {
    isClosed = true;
    for (L link = idle.poll(); link != null; link = idle.poll()) {
      link.close();
    }
  }
}
