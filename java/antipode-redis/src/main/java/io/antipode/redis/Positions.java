package io.antipode.redis;

import io.antipode.barrier.Observation;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Status;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** What a server in a state shows of writes and promises, judged without I/O. */
final class Positions {
  /** How errors begin that pass on their own. */
  private static final List<String> PASSING = List.of("BUSY", "LOADING", "MASTERDOWN", "Redis is ");

  /** The outcome of one position, and why. */
  private record Judged(Status status, String cause) {}

  private Positions() {}

  /** Returns whether a server that answers with this error may answer otherwise later. */
  static boolean isPassing(String error) {
    return PASSING.stream().anyMatch(error::startsWith);
  }

  private static Judged judge(ServerState state, String log, long offset, Map<String, Long> ends) {
    if (state.isBeingReplaced()) {
      return new Judged(Status.NOT_YET, "the replica's data is being replaced by a full resync");
    }
    if (log.equals(state.log())) {
      return Long.compareUnsigned(offset, state.offset()) <= 0
          ? new Judged(Status.VISIBLE, "")
          : new Judged(Status.NOT_YET, "at offset " + state.offset());
    }
    if (log.equals(state.formerLog())
        && state.formerEnd() > 0
        && Long.compareUnsigned(offset, state.formerEnd()) < 0) {
      return new Judged(Status.VISIBLE, "");
    }
    Long end = ends.get(log);
    if (end != null) {
      if (Long.compareUnsigned(offset, end) > 0) {
        return new Judged(Status.LOST, log + " ended at " + end + " when a replica was promoted");
      }
      // Offsets go on where the earlier log ended, so the present offset decides.
      return new Judged(
          Long.compareUnsigned(offset, state.offset()) <= 0 ? Status.VISIBLE : Status.NOT_YET,
          "by log history");
    }
    if (state.isPrimary() && log.equals(state.formerLog())) {
      return new Judged(
          Status.LOST,
          "this server was promoted when it had " + log + " up to " + (state.formerEnd() - 1));
    }
    return state.isRelated()
        ? new Judged(Status.UNKNOWN_LOG, "the server is on " + state.log())
        : new Judged(
            Status.NOT_YET, "the replica has lost its primary and may still learn of this log");
  }

  /** Judges whether a server follows the primary of a log now, or is that primary. */
  private static Judged judgePrimary(ServerState state, String log) {
    if (!state.isRelated()) {
      return new Judged(Status.NOT_YET, "the replica is not connected to its primary");
    }
    return log.equals(state.log())
        ? new Judged(Status.VISIBLE, "")
        : new Judged(
            Status.UNKNOWN_LOG,
            "the server is on "
                + state.log()
                + ": it does not follow the primary of "
                + log
                + ", which was asked for its position and may have been replaced");
  }

  private static Judged judgeText(ServerState state, String key, String version) {
    return key.equals(Shim.PRIMARY_KEY)
        ? judgePrimary(state, version)
        : new Judged(Status.UNDECIDABLE, "it is no position of a Redis log");
  }

  /**
   * Returns what a server shows.
   *
   * @param records what the server has of each promise that was asked for; null for none
   */
  static Observation observation(
      ServerState state,
      String process,
      Collection<WriteId> writes,
      LogHistory history,
      List<Promise> promises,
      List<@Nullable String> records) {
    Map<String, Long> ends = history.of(state.log());
    String server = process.isEmpty() ? state.log() : process + "/" + state.log();
    Observation.Builder shown = Observation.of(server);
    for (WriteId write : writes) {
      String text = write.opaqueVersion();
      Judged judged =
          text == null
              ? judge(state, write.key(), write.version(), ends)
              : judgeText(state, write.key(), text);
      shown.write(write, judged.status, judged.cause);
    }
    for (int nth = 0; nth < promises.size(); nth++) {
      shown.promise(
          promises.get(nth), state.isBeingReplaced() ? Status.NOT_YET : recorded(records.get(nth)));
    }
    return shown.build();
  }

  private static Status recorded(@Nullable String record) {
    if (Companion.FULFILLED.equals(record)) {
      return Status.VISIBLE;
    }
    return Companion.ABANDONED.equals(record) ? Status.ABANDONED : Status.NOT_YET;
  }

  /** Returns the logs that the log history should be asked about. */
  static List<String> unknownLogs(Observation shown, Collection<WriteId> writes) {
    TreeSet<String> logs = new TreeSet<>();
    for (WriteId write : writes) {
      if (shown.status(write) == Status.UNKNOWN_LOG && !write.key().equals(Shim.PRIMARY_KEY)) {
        logs.add(write.key());
      }
    }
    return new ArrayList<>(logs);
  }

  /**
   * Returns a look as it counts for one floor: a server that lacks any of it may lack the log
   * history, too, which comes as all writes do. So a log is unknown for good only where all else
   * has arrived.
   */
  static Observation patient(Observation shown, Collection<? extends Dependency> wanted) {
    boolean isLate = wanted.stream().anyMatch(each -> shown.status(each) == Status.NOT_YET);
    return isLate ? shown.with(Status.UNKNOWN_LOG, Status.NOT_YET) : shown;
  }
}
