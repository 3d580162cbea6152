package io.antipode.postgresql;

import io.antipode.barrier.Shim;
import io.antipode.barrier.Status;
import io.antipode.lineage.WriteId;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What one poll showed of a server. Without I/O.
 *
 * @param system its system identifier
 * @param isRecovering whether it replays another server's log
 * @param position what it has replayed, or flushed
 * @param timeline which it was on at that moment, or on an earlier one, for all that is known
 * @param started when its postmaster started, which distinguishes servers
 * @param isReceiving whether a receiver of the log runs
 * @param chain the timelines that lead to its own; null where that is not known
 * @param leaves where the next timeline, whose history the server has already, leaves its own; null
 *     for nowhere
 * @param isUnseen whether its receiver, once it streams, would show what is not known
 */
record ServerState(
    String system,
    boolean isRecovering,
    long position,
    int timeline,
    String started,
    boolean isReceiving,
    @Nullable List<Span> chain,
    @Nullable Long leaves,
    boolean isUnseen) {
  /** What lets a user read the files that say where timelines begin. */
  private static final String GRANT =
      "GRANT EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)";

  private static final String GRANT_STREAM = "GRANT pg_read_all_stats";
  private static final String MIGRATION = "PostgreSqlMigrations.history()";

  private static final Set<String> TRUE = Set.of("t", "true");

  /** The outcome of one write, and why. */
  record Judged(Status status, String cause) {}

  /**
   * Returns what a server answered to {@link Look#sql}. A standby's control file names its timeline
   * late. So a user who may not read histories has to see that it receives the first one. For
   * others it is on the next timeline where that leaves the one of the control file below its
   * place, and it follows the next one.
   *
   * @throws NoLsnException if the answer shows no position
   */
  static ServerState of(Map<String, String> row) throws NoLsnException {
    boolean isRecovering = TRUE.contains(text(row, "recovering"));
    if (text(row, "timeline").isEmpty()) {
      throw new NoLsnException("the server does not say on which timeline it is");
    }
    int timeline = Integer.parseInt(text(row, "timeline"), isRecovering ? 10 : 16);
    int received = text(row, "received").isEmpty() ? 0 : Integer.parseInt(text(row, "received"));
    Rights rights = Rights.of(text(row, "rights"));
    if (!rights.readsHistories()) {
      timeline = Math.max(timeline, received);
    }
    boolean isKnown = rights.readsHistories() || !isRecovering || received == timeline;
    boolean isUnseen = rights == Rights.STREAM && timeline == 1 && !isKnown;
    List<Span> chain = isKnown ? Span.chain(text(row, "history"), timeline) : null;
    long position = Lsn.parse(text(row, "position"));
    @Nullable Long leaves = leaves(text(row, "next"), timeline);
    if (leaves != null && !Lsn.isAtLeast(leaves, position) && TRUE.contains(text(row, "follows"))) {
      timeline++;
      chain = Span.chain(text(row, "next"), timeline);
      leaves = leaves(text(row, "later"), timeline);
    }
    return new ServerState(
        text(row, "system"),
        isRecovering,
        position,
        timeline,
        text(row, "started"),
        TRUE.contains(text(row, "receiving")),
        chain,
        leaves,
        isUnseen);
  }

  private static String text(Map<String, String> row, String name) {
    return row.getOrDefault(name, "");
  }

  private static @Nullable Long leaves(String next, int timeline) {
    List<Span> following = next.isEmpty() ? null : Span.chain(next, timeline + 1);
    if (following == null || following.size() < 2) {
      return null;
    }
    Span own = following.get(following.size() - 2);
    return own.timeline() == timeline ? own.end() : null;
  }

  /** Returns the incarnation: it changes with the process, its role and its timeline. */
  String server() {
    String role = isRecovering ? "standby" : "primary";
    return system + "/" + timeline + "@" + started + "/" + role;
  }

  /** Returns the log that it writes or replays; null where its beginning is not known. */
  @Nullable Log log() {
    return chain == null ? null : new Log(system, timeline, chain.get(chain.size() - 1).start());
  }

  /** Returns the log up to whose position a read may have seen; null where nobody knows which. */
  @Nullable Log covers() {
    boolean isMoving = leaves != null && !Lsn.isAtLeast(leaves, position);
    return isMoving ? null : log();
  }

  /** Returns the outcome of one write. */
  Judged judge(WriteId write) {
    if (write.key().equals(Shim.PRIMARY_KEY)) {
      return primary(Objects.requireNonNullElse(write.opaqueVersion(), ""));
    }
    Log log = Log.of(write.key());
    if (log == null || write.opaqueVersion() != null) {
      return new Judged(Status.UNKNOWN_LOG, "it is no position of a log of PostgreSQL's");
    }
    if (!log.system().equals(system)) {
      return new Judged(
          Status.UNKNOWN_LOG, "the server is of another system, or is fed by logical copies");
    }
    if (chain == null) {
      return unread();
    }
    for (Span span : chain) {
      if (span.isOf(log)) {
        return within(span, write.version());
      }
    }
    return isStillBefore(log)
        ? stillBefore()
        : new Judged(
            Status.UNKNOWN_LOG, "timeline " + log.timeline() + " is none of the server's history");
  }

  private boolean isStillBefore(Log log) {
    return isRecovering && log.timeline() > timeline && Lsn.isAtLeast(log.fork(), position);
  }

  private Judged stillBefore() {
    return new Judged(Status.NOT_YET, "the standby is on timeline " + timeline + " still");
  }

  /** Judges a position in a timeline of the chain. */
  private Judged within(Span span, long version) {
    if (span.end() != null && !Lsn.isAtLeast(span.end(), version)) {
      return new Judged(
          Status.LOST,
          "timeline " + span.timeline() + " was left before it, at " + Lsn.text(span.end()));
    }
    if (span.end() == null && leaves != null && !Lsn.isAtLeast(leaves, version)) {
      return new Judged(
          Status.NOT_YET,
          "timeline "
              + (timeline + 1)
              + " leaves this one at "
              + Lsn.text(leaves)
              + ", before the write");
    }
    return Lsn.isAtLeast(position, version)
        ? new Judged(Status.VISIBLE, "")
        : new Judged(
            Status.NOT_YET,
            "the server is at " + Lsn.text(position) + ", and the write at " + Lsn.text(version));
  }

  private Judged unread() {
    return isUnseen
        ? new Judged(
            Status.NOT_YET,
            "the standby receives no log now, and only its receiver shows this user its timeline;"
                + " the function of "
                + MIGRATION
                + " would, too")
        : new Judged(Status.UNKNOWN_LOG, unreadable());
  }

  /** Returns why nothing can be said of a server, and what to do. */
  String unreadable() {
    if (timeline == 1 && !isReceiving) {
      return "this user may not see on which timeline the standby is, and no receiver shows it: "
          + GRANT
          + " TO that user, or run "
          + MIGRATION;
    }
    return timeline == 1
        ? "this user may not see on which timeline the standby is: "
            + GRANT_STREAM
            + " TO that user, or run "
            + MIGRATION
            + ", which serves after a fail-over, too"
        : "this user may not read where timeline "
            + timeline
            + " begins: "
            + GRANT
            + " TO that user, or run "
            + MIGRATION;
  }

  /** Judges whether the server is, or follows, the primary that writes a log now. */
  private Judged primary(String primary) {
    Log log = log();
    Log demanded = Log.of(primary);
    if (log == null || demanded == null) {
      return unread();
    }
    if (log.equals(demanded) && leaves == null) {
      return !isRecovering || isReceiving
          ? new Judged(Status.VISIBLE, "")
          : new Judged(Status.NOT_YET, "the standby is not connected to its source");
    }
    boolean isBefore = leaves == null && log.system().equals(demanded.system());
    return isBefore && isStillBefore(demanded)
        ? stillBefore()
        : new Judged(
            Status.UNKNOWN_LOG,
            "the server does not follow " + primary + ", which may have been replaced");
  }
}
