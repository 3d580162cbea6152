package io.antipode.postgresql;

import io.antipode.barrier.AsOfNow;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Lineages of events that are read from PostgreSQL's log: each is the commit that emitted it. An
 * event without a position, such as that of {@code NOTIFY}, takes {@link
 * io.antipode.Antipode#asOfNow}.
 */
public final class PostgreSqlEvents {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);
  private static final int MOST_LOGS = 64;

  /** What says where timelines begin that were asked for: that never changes. */
  private static final Map<List<Object>, Log> LOGS = new ConcurrentHashMap<>();

  private PostgreSqlEvents() {}

  /**
   * Returns what an event depends on, in the log that its primary writes: it is asked for each
   * event, on a connection made for it. Name system and timeline where the reader knows them.
   *
   * @param datastore the name that every service spells alike
   * @param lsn the end of the commit, as PostgreSQL writes it ({@code
   *     LogSequenceNumber.asString()}). A change's own position is before it, and too early
   * @return the commit; incomplete ({@code unsampled}) where the primary does not answer
   * @throws IllegalArgumentException if that is the end of no commit
   * @throws io.antipode.ConfigurationException if no client here reaches the primary
   */
  public static Lineage lineage(String datastore, String lsn) {
    long position = position(lsn);
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    List<Log> found = writing(datastore);
    return found.size() == 1 ? at(datastore, found.get(0), position) : unsampled(datastore);
  }

  /**
   * Returns what an event depends on, by what {@code IDENTIFY_SYSTEM} of the replication protocol
   * says of its reader's server. Nobody is asked on the first timeline, and the primary once for
   * each later one. An event of another system, or one that a promotion lost, has an entry that
   * barriers refuse.
   *
   * @param lsn as of {@link #lineage(String, String)}
   * @param system PostgreSQL's system identifier
   * @param timeline in which it was committed
   * @return the commit; incomplete ({@code unsampled}) where the primary does not answer, or is on
   *     another timeline, and this one is not the first
   * @throws IllegalArgumentException if one of them is none
   * @throws io.antipode.ConfigurationException if no client here reaches the primary
   */
  public static Lineage lineage(String datastore, String lsn, String system, int timeline) {
    long position = position(lsn);
    Log named = new Log(system, timeline, 0);
    if (!named.equals(Log.of(named.key()))) {
      throw new IllegalArgumentException(
          "system " + system + ", timeline " + timeline + ": PostgreSQL numbers neither so");
    }
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    List<Object> name = List.of(datastore, system, timeline);
    Log known = timeline == 1 ? named : LOGS.get(name);
    if (known != null) {
      return at(datastore, known, position);
    }
    List<Log> found = writing(datastore);
    if (!found.isEmpty() && found.stream().noneMatch(log -> log.system().equals(system))) {
      return at(datastore, named, position); // Of no server here, wherever it begins.
    }
    List<Log> fitting = found.stream().filter(log -> log.timeline() == timeline).toList();
    if (fitting.size() != 1) {
      return unsampled(datastore);
    }
    if (LOGS.size() >= MOST_LOGS) {
      LOGS.clear();
    }
    LOGS.put(name, fitting.get(0));
    return at(datastore, fitting.get(0), position);
  }

  /** Returns the logs that primaries write now; none where one of them does not answer. */
  private static List<Log> writing(String datastore) {
    return AsOfNow.positions(datastore, TIMEOUT).stream()
        .map(write -> Log.of(write.key()))
        .filter(Objects::nonNull)
        .distinct()
        .toList();
  }

  private static long position(String lsn) {
    try {
      long position = Lsn.parse(Objects.requireNonNull(lsn, "lsn"));
      if (position != 0) {
        return position;
      }
    } catch (NoLsnException error) {
      throw new IllegalArgumentException(error.getMessage(), error);
    }
    throw new IllegalArgumentException(lsn + " is the end of no commit");
  }

  private static Lineage at(String datastore, Log log, long position) {
    return Lineage.of(WriteId.of(datastore, log.key(), position).writtenAt(Time.hour()));
  }

  private static Lineage unsampled(String datastore) {
    return Lineage.empty().marked(new Incomplete(datastore, "unsampled"));
  }
}
