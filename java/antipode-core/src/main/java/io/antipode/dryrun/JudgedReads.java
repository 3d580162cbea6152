package io.antipode.dryrun;

import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.StalenessCheck;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The reads of a dry run: judged, and written down, as they are sent. */
final class JudgedReads {
  /** Writes records. */
  interface Recorder {
    /** Writes a record of what a request did; returns its number, below 0 where there is none. */
    int record(String kind, Scope scope, StackTraceElement site, String about);

    /** Writes a record that is of no request. */
    void evidence(String about);
  }

  private final String region;
  private final Recorder recorder;
  private final Evidence evidence;
  private final DeclaredRoles roles;

  JudgedReads(String region, Recorder recorder, Evidence evidence, DeclaredRoles roles) {
    this.region = region;
    this.recorder = recorder;
    this.evidence = evidence;
    this.roles = roles;
  }

  /**
   * Judges a read that a client is about to send.
   *
   * @param isAutomatic whether the client could hold it back, and would
   * @param isOwn whether the read is over when this thread goes on
   */
  void judge(Scope scope, Shim client, boolean isAutomatic, boolean isOwn) {
    String datastore = client.datastore();
    boolean isDeclared = client.readsFrom() == ReadsFrom.REPLICA;
    if (!isDeclared && roles.isKnown(client)) {
      return;
    }
    List<Dependency> exact = exact(scope.known(), datastore);
    if (exact.isEmpty()) {
      return;
    }
    if (!isDeclared) {
      StackTraceElement site = DryRun.site();
      String lint = DryRun.lint("undeclared-replica", datastore, "");
      roles.ask(client, () -> recorder.record("lint", scope, site, lint));
      return;
    }
    Notes notes = Notes.of(scope);
    List<Dependency> missed = exact.stream().filter(each -> !notes.covers(region, each)).toList();
    String verdict = missed.isEmpty() ? "guarded" : isAutomatic ? "automatic" : "unguarded";
    StackTraceElement site = DryRun.site();
    int number =
        recorder.record(
            "read",
            scope,
            site,
            "\"datastore\":"
                + Json.text(datastore)
                + ",\"verdict\":\""
                + verdict
                + "\",\"writes\":"
                + Json.writes(missed.isEmpty() ? exact : missed));
    Place place = Place.of(site);
    if (verdict.equals("unguarded")) {
      found(datastore, place, missed);
    }
    if (!missed.isEmpty() && number >= 0 && isOwn) {
      lookInto(client, place, missed, number);
    }
  }

  /**
   * Takes in that a read showed a write: it need not be waited for where it was read. Not one of a
   * log that the request depended on without a barrier: whether the read showed that already is a
   * matter of lag, and no verdict is.
   */
  void showed(Scope scope, Shim client, WriteId write) {
    if (client.readsFrom() != ReadsFrom.REPLICA) {
      return;
    }
    Notes notes = Notes.of(scope);
    boolean isOwed =
        scope.known().writes().stream()
            .filter(each -> each.datastore().equals(write.datastore()))
            .filter(each -> each.key().equals(write.key()) && !each.isCovering())
            .anyMatch(each -> !notes.covers(region, each));
    if (!isOwed) {
      notes.guard(region, write);
    }
  }

  private static List<Dependency> exact(Lineage known, String datastore) {
    List<Dependency> exact = new ArrayList<>();
    for (WriteId write : known.writes()) {
      if (!write.isCovering() && write.datastore().equals(datastore)) {
        exact.add(write);
      }
    }
    known.promises().stream()
        .filter(promise -> promise.datastore().equals(datastore))
        .forEach(exact::add);
    return exact;
  }

  /** Counts an unguarded read, and logs its place once. */
  private static void found(String datastore, Place place, List<Dependency> missed) {
    Counts.count("unguarded_read", datastore);
    Counts.logOnce(
        "unguarded_read",
        datastore,
        place,
        () ->
            place.file()
                + ":"
                + place.line()
                + " reads '"
                + datastore
                + "' without a barrier for what its request wrote there: "
                + String.join(
                    ", ", missed.stream().map(Object::toString).sorted().limit(3).toList()));
  }

  /** Finds out for how long the read of a record would have had to wait. */
  private void lookInto(Shim client, Place place, List<Dependency> missed, int number) {
    String about = test() + "\"of\":" + number;
    StalenessCheck check =
        StalenessCheck.of(
            client,
            missed,
            (ended, isConfirmed, waited) -> {
              evidence.ended(ended);
              recorder.evidence(
                  about
                      + ",\"confirmed\":"
                      + (isConfirmed ? "true" : "null")
                      + ",\"waited_s\":"
                      + seconds(waited));
            });
    if (check != null && evidence.wants(List.of(client.datastore(), place), client.datastore())) {
      evidence.seek(check);
    }
  }

  private static String test() {
    String test = RunningTest.get();
    return test == null ? "" : "\"test\":" + Json.text(test) + ",";
  }

  private static String seconds(@Nullable Duration waited) {
    return waited == null ? "null" : String.format(Locale.ROOT, "%.6f", waited.toNanos() / 1e9);
  }
}
