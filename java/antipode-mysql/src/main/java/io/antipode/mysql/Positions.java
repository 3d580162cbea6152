package io.antipode.mysql;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What writes and reads are named by; and what is stored with values. Without I/O. */
final class Positions {
  /** Modes in which a server gives new writes numbers. */
  private static final Set<String> NUMBERING = Set.of("ON", "ON_PERMISSIVE");

  private Positions() {}

  /**
   * Returns the writes that a session reported: one, or several of several statements.
   *
   * @param gtids MySQL's OWN_GTID, or MariaDB's {@code last_gtid}
   * @param runs where runs of numbers begin on that server; learns
   */
  static List<WriteId> minted(Flavor flavor, String gtids, Runs runs, String datastore)
      throws NoGtidException {
    List<WriteId> minted = new ArrayList<>();
    long hour = Time.hour();
    if (flavor == Flavor.MARIADB) {
      MariaDbState.parse(gtids)
          .last()
          .forEach(
              (log, number) ->
                  minted.add(WriteId.of(datastore, log.key(), number).writtenAt(hour)));
      return minted;
    }
    GtidSet.parse(gtids)
        .logs()
        .forEach(
            (log, found) ->
                found.forEach(
                    run -> {
                      MySqlLog named = new MySqlLog(log, runs.first(log, run.last()));
                      minted.add(WriteId.of(datastore, named.key(), run.last()).writtenAt(hour));
                    }));
    return minted;
  }

  /**
   * Returns what a read before it may have seen.
   *
   * @param asked the server's answer, asked for in that order: {@code gtid_owned}, {@code
   *     gtid_executed}, {@code gtid_mode}; or {@code gtid_binlog_pos}
   */
  static Lineage covering(Flavor flavor, Map<String, String> asked, String datastore) {
    try {
      return Lineage.empty().merge(covered(flavor, asked, datastore));
    } catch (NoGtidException error) {
      return Lineage.empty().marked(new Incomplete(datastore, "unsampled"));
    }
  }

  /** Returns the position as covering entries. */
  static Lineage covered(Flavor flavor, Map<String, String> asked, String datastore)
      throws NoGtidException {
    Lineage lineage = Lineage.empty();
    long hour = Time.hour();
    if (flavor == Flavor.MARIADB) {
      MariaDbState position = MariaDbState.parse(asked.getOrDefault("gtid_binlog_pos", ""));
      for (Map.Entry<MariaDbState.Log, Long> each : position.last().entrySet()) {
        WriteId write = WriteId.of(datastore, each.getKey().key(), each.getValue());
        lineage = lineage.append(write.writtenAt(hour).asCovering());
      }
      return lineage;
    }
    String mode = asked.getOrDefault("gtid_mode", "");
    if (!NUMBERING.contains(mode)) {
      throw new NoGtidException("gtid_mode is " + mode);
    }
    GtidSet seen =
        GtidSet.parse(asked.getOrDefault("gtid_owned", ""))
            .union(GtidSet.parse(asked.getOrDefault("gtid_executed", "")));
    for (Map.Entry<String, List<Run>> log : seen.logs().entrySet()) {
      for (Run run : log.getValue()) {
        String key = new MySqlLog(log.getKey(), run.first()).key();
        lineage =
            lineage.append(WriteId.of(datastore, key, run.last()).writtenAt(hour).asCovering());
      }
    }
    return lineage;
  }
}
