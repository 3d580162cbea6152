package io.antipode.mysql;

import io.antipode.barrier.Observation;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Status;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** One poll of a server: what it has, and of what is missing, whether it can still come. */
final class Look {
  /** How many servers high a chain of replicas is followed. */
  private static final int MOST = 4;

  private final Servers servers;
  private final boolean isGroup;
  private final Map<WriteId, Judged> judged = new LinkedHashMap<>();
  private ServerState state;

  /** The outcome of one write, and why. */
  private record Judged(Status status, String cause) {}

  /**
   * What one poll showed.
   *
   * @param state what the server had
   */
  record Shown(ServerState state, Map<WriteId, Judged> judged) {
    Status status(WriteId write) {
      Judged found = judged.get(write);
      return found == null ? Status.NOT_YET : found.status;
    }

    /** Adds what was seen of each write. */
    void tell(Observation.Builder observation) {
      judged.forEach((write, each) -> observation.write(write, each.status, each.cause));
    }
  }

  private Look(Servers servers, boolean isGroup) throws RefusedException {
    this.servers = servers;
    this.isGroup = isGroup;
    this.state = servers.state(null);
  }

  /**
   * Polls once.
   *
   * @param isGroup whether the server is a member of a group, where others may bring what it lacks
   */
  static Shown at(Servers servers, boolean isGroup, Collection<WriteId> writes)
      throws RefusedException {
    return new Look(servers, isGroup).look(writes);
  }

  private Shown look(Collection<WriteId> writes) throws RefusedException {
    List<WriteId> missing = new ArrayList<>();
    for (WriteId write : writes) {
      if (write.key().equals(Shim.PRIMARY_KEY)) {
        judged.put(write, primary(write));
      } else if (state.has(write, true)) {
        judged.put(write, new Judged(Status.VISIBLE, ""));
      } else {
        missing.add(write);
      }
    }
    if (!missing.isEmpty()) {
      judge(missing);
    }
    return new Shown(state, judged);
  }

  /** Judges whether the server follows a primary now. */
  private Judged primary(WriteId demand) {
    String primary = Objects.requireNonNullElse(demand.opaqueVersion(), "");
    try {
      Judged found = follows(primary, null, 0);
      return found.status == Status.UNKNOWN_LOG
          ? new Judged(
              Status.UNKNOWN_LOG,
              "the server does not follow the primary "
                  + primary
                  + ", which may have been replaced")
          : found;
    } catch (RefusedException error) {
      String cause = String.valueOf(error.getMessage());
      if (error.isPassing()) {
        return new Judged(Status.NOT_YET, cause);
      }
      String grant = "GRANT " + servers.grants() + " ON *.*";
      Counts.logOnce(
          "mysql_privilege",
          demand.datastore(),
          cause,
          () ->
              "whether a server of "
                  + demand.datastore()
                  + " follows the primary that was asked for its position cannot be known, so"
                  + " barriers over incomplete lineages fail: "
                  + cause
                  + ". What this user lacks is: "
                  + grant);
      return new Judged(
          Status.UNKNOWN_LOG,
          "whether the server follows the primary "
              + primary
              + " cannot be known: "
              + cause
              + "; "
              + grant);
    }
  }

  /** Judges whether a server is a primary, or follows it over servers that are connected. */
  private Judged follows(String primary, @Nullable Source above, int height)
      throws RefusedException {
    if (servers.primaries(above).contains(primary)) {
      return new Judged(Status.VISIBLE, "");
    }
    Judged all = new Judged(Status.UNKNOWN_LOG, "");
    RefusedException refused = null;
    for (Source each : servers.sources(above)) {
      try {
        Judged one = followsBy(each, primary, height);
        if (one.status == Status.VISIBLE) {
          return one;
        }
        all = one.status == Status.NOT_YET ? one : all;
      } catch (RefusedException error) {
        refused = error;
      }
    }
    if (refused != null && all.status == Status.UNKNOWN_LOG) {
      throw refused;
    }
    return all;
  }

  /** Judges the same of a server by way of one that it follows. */
  private Judged followsBy(Source source, String primary, int height) throws RefusedException {
    String host = source.host() + ":" + source.port();
    if (!source.isConnected()) {
      return new Judged(Status.NOT_YET, "a server is not connected to its source " + host);
    }
    if (source.log().equals(primary)) {
      return new Judged(Status.VISIBLE, "");
    }
    return height >= MOST
        ? new Judged(Status.UNKNOWN_LOG, "")
        : follows(primary, source, height + 1);
  }

  private Judged judgedOf(WriteId write) {
    return judged.getOrDefault(write, new Judged(Status.NOT_YET, ""));
  }

  private void judge(List<WriteId> missing) throws RefusedException {
    List<Source> sources;
    try {
      sources = servers.sources(null);
    } catch (RefusedException error) {
      String cause = String.valueOf(error.getMessage());
      missing.forEach(write -> judged.put(write, blind(write, cause)));
      String datastore = missing.get(0).datastore();
      Counts.logOnce(
          "mysql_privilege",
          datastore,
          cause,
          () ->
              "whether a late write to "
                  + datastore
                  + " is lost cannot be known, so that a barrier waits for it until its deadline: "
                  + cause
                  + ". This user lacks REPLICATION CLIENT (MariaDB: BINLOG MONITOR, REPLICA MONITOR)");
      return;
    }
    for (WriteId write : missing) {
      judged.put(write, judge(write, sources));
    }
    List<WriteId> doubtful =
        missing.stream().filter(write -> judgedOf(write).status != Status.NOT_YET).toList();
    if (!doubtful.isEmpty()) {
      // It may have come, and its source gone, since the first question.
      state = servers.state(null);
      for (WriteId write : doubtful) {
        if (state.has(write, !sources.isEmpty())) {
          judged.put(write, new Judged(Status.VISIBLE, ""));
        }
      }
    }
  }

  private Judged late(WriteId write, String more) {
    String where =
        "the server is at "
            + state.at(write)
            + ", and the write is "
            + Long.toUnsignedString(write.version());
    return new Judged(Status.NOT_YET, more.isEmpty() ? where : where + "; " + more);
  }

  /** Judges by what the log alone says of a write that the server lacks; null where nothing. */
  private @Nullable Judged byLog(WriteId write) {
    if (!state.isOfLog(write)) {
      return new Judged(Status.UNKNOWN_LOG, "it is no position of a log of this kind of server");
    }
    return state.excludes(write) ? new Judged(Status.LOST, "its domain went on without it") : null;
  }

  /** Judges where the user may not ask for sources: who takes writes may have been promoted. */
  private Judged blind(WriteId write, String error) {
    Judged byLog = byLog(write);
    if (byLog != null) {
      return byLog;
    }
    if (!state.knows(write)) {
      return new Judged(
          Status.UNKNOWN_LOG, "the server does not know this log, nor shows more: " + error);
    }
    return state.isWritable()
        ? new Judged(
            Status.UNKNOWN_LOG, "the server takes writes, and does not show more: " + error)
        : late(write, "");
  }

  private Judged judge(WriteId write, List<Source> sources) {
    Judged byLog = byLog(write);
    if (byLog != null) {
      return byLog;
    }
    if (sources.isEmpty()) {
      return alone(write);
    }
    String trouble = join(sources.stream().map(Source::trouble).toList());
    if (sources.stream().anyMatch(source -> source.brings(write))) {
      return late(write, trouble);
    }
    Found found = ask(sources, write, 1);
    String cause = found.cause.isEmpty() ? trouble : found.cause;
    boolean isKnown = found.isKnown || state.knows(write);
    if (found.isComing || (isKnown && !found.isProof)) {
      return late(write, cause);
    }
    return isKnown
        ? new Judged(Status.LOST, "neither this server nor the primary that it follows has it")
        : new Judged(
            Status.UNKNOWN_LOG,
            cause.isEmpty() ? "neither this server nor its primary knows this log" : cause);
  }

  /** Judges where the server follows nobody. */
  private Judged alone(WriteId write) {
    if (!state.knows(write)) {
      return new Judged(
          Status.UNKNOWN_LOG, "the server does not know this log, and follows no other server");
    }
    if (isGroup) {
      return late(write, "");
    }
    if (state.has(write, false)) {
      return new Judged(Status.VISIBLE, "");
    }
    return state.isWritable()
        ? new Judged(Status.LOST, "this primary lacks it and follows no other server")
        : new Judged(
            Status.NOT_YET, "the server follows no other server, and takes no writes either");
  }

  /**
   * What asking upstream came to.
   *
   * @param isComing it is there, or may be: wait
   * @param isProof a primary lacks it
   * @param isKnown a server there knows its log
   */
  private record Found(boolean isComing, boolean isProof, boolean isKnown, String cause) {}

  private Found ask(List<Source> sources, WriteId write, int height) {
    List<Found> found = sources.stream().map(source -> ask(source, write, height)).toList();
    return new Found(
        found.stream().anyMatch(Found::isComing),
        found.stream().allMatch(Found::isProof),
        found.stream().anyMatch(Found::isKnown),
        join(found.stream().map(Found::cause).toList()));
  }

  private Found ask(Source source, WriteId write, int height) {
    boolean isKnown = false;
    ServerState there;
    List<Source> above;
    try {
      there = servers.state(source);
      if (there.has(write, false)) {
        return new Found(true, false, true, "");
      }
      isKnown = there.knows(write);
      above = servers.sources(source);
    } catch (RefusedException error) {
      String where = source.host() + ":" + source.port();
      return new Found(
          error.isPassing(),
          false,
          isKnown,
          "its source " + where + " cannot be asked: " + error.getMessage());
    }
    if (above.isEmpty()) {
      return new Found(false, there.isWritable() && !isGroup, isKnown, "");
    }
    if (above.stream().anyMatch(each -> each.brings(write))) {
      return new Found(true, false, true, "");
    }
    if (height >= MOST) {
      return new Found(false, false, isKnown, "the chain of replicas is too long to follow");
    }
    Found found = ask(above, write, height + 1);
    return new Found(found.isComing, found.isProof, found.isKnown || isKnown, found.cause);
  }

  private static String join(List<String> causes) {
    return String.join("; ", causes.stream().filter(each -> !each.isEmpty()).toList());
  }
}
