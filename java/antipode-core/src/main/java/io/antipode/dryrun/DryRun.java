package io.antipode.dryrun;

import io.antipode.Dependency;
import io.antipode.Lineage;
import io.antipode.Observer;
import io.antipode.Scope;
import io.antipode.Settings;
import io.antipode.WriteId;
import io.antipode.barrier.Shims;
import io.antipode.propagation.Headers;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** What this process's dry run knows and writes. The specification says what each record means. */
final class DryRun implements Observer {
  /** Counts of reads whose values have a lineage that nobody knows. */
  private static final Set<String> UNKNOWN_LINEAGES =
      Set.of("companion_absent", "foreign", "unreadable");

  private final String region;
  private final @Nullable Records records;
  private final BiConsumer<String, String> counting = this::counted;

  /** Writes records into a directory; without one, findings are counted and logged alone. */
  DryRun(@Nullable Path directory, @Nullable String region) {
    this.region = region == null ? "" : region;
    this.records = directory == null ? null : new Records(directory, region);
    Counts.observe(counting);
  }

  @Override
  public void opened(Scope scope, boolean isIncoming) {
    record(
        "scope",
        scope,
        isIncoming ? null : site(),
        "\"opened\":\"" + (isIncoming ? "incoming" : "here") + "\"");
  }

  @Override
  public void wrote(Scope scope, Dependency write) {
    if (write instanceof WriteId id && id.isCovering()) {
      return;
    }
    StackTraceElement site = site();
    record("write", scope, site, "\"write\":" + Json.write(write));
    if (scope.isAnswered()) {
      lint("after-response", write.datastore(), "", scope, site);
    }
  }

  @Override
  public void reads(Scope scope, String datastore, boolean isAutomatic) {
    Lineage known = scope.known();
    List<Dependency> exact = new ArrayList<>();
    for (WriteId write : known.writes()) {
      if (!write.isCovering() && write.datastore().equals(datastore)) {
        exact.add(write);
      }
    }
    known.promises().stream()
        .filter(promise -> promise.datastore().equals(datastore))
        .forEach(exact::add);
    if (exact.isEmpty()) {
      return;
    }
    Notes notes = Notes.of(scope);
    List<Dependency> missed = exact.stream().filter(each -> !notes.covers(region, each)).toList();
    String verdict = missed.isEmpty() ? "guarded" : isAutomatic ? "automatic" : "unguarded";
    StackTraceElement site = site();
    record(
        "read",
        scope,
        site,
        "\"datastore\":"
            + Json.text(datastore)
            + ",\"verdict\":\""
            + verdict
            + "\",\"writes\":"
            + Json.writes(missed.isEmpty() ? exact : missed));
    if (verdict.equals("unguarded")) {
      found(datastore, Place.of(site), missed);
    }
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

  @Override
  public void barrier(BarrierCall call) {
    Scope scope = call.scope();
    if (scope != null && !call.guards().isEmpty()) {
      Notes notes = Notes.of(scope);
      call.guards().forEach(each -> notes.guard(region, each));
    }
    record(
        "barrier",
        scope,
        call.site(),
        "\"guards\":"
            + Json.writes(call.guards())
            + ",\"at\":\""
            + (call.isAtRead() ? "read" : "now")
            + "\",\"only\":"
            + Json.texts(call.only())
            + ",\"exclude\":"
            + Json.texts(call.exclude())
            + ",\"dry\":"
            + call.isDry());
    if (call.isNothing()) {
      String detail = call.isEmpty() ? "its lineage is empty" : "nothing of it can be waited for";
      lint("nothing-to-wait-for", "", detail, scope, call.site());
    }
  }

  /** A count may be of a read whose value has a lineage that nobody knows. */
  private void counted(String name, String datastore) {
    // What is unreadable elsewhere was no read.
    if (UNKNOWN_LINEAGES.contains(name)
        && !datastore.equals(Headers.BAGGAGE)
        && !Shims.of(datastore).isEmpty()) {
      String detail = name.equals("companion_absent") ? "absent" : name;
      lint("unknown-lineage", datastore, detail, Scope.currentOrNull(), site());
    }
  }

  @Override
  public void unscoped(String what, String datastore) {
    if (what.equals("write")) {
      lint("unscoped-write", datastore, "", null, site());
    }
  }

  @Override
  public Lineage absorb(Scope scope, Lineage lineage) {
    if (lineage.unknown().isEmpty()) {
      return lineage;
    }
    Notes.of(scope).take(lineage.unknown());
    return lineage.withoutNotes();
  }

  @Override
  public Collection<String> notes(Scope scope) {
    return Notes.of(scope).items(Settings.current().egress());
  }

  private static StackTraceElement site() {
    return CallSite.frame(Settings.current().appPackages());
  }

  private void lint(
      String lint, String datastore, String detail, @Nullable Scope scope, StackTraceElement site) {
    record(
        "lint",
        scope,
        site,
        "\"lint\":\""
            + lint
            + "\",\"datastore\":"
            + Json.text(datastore)
            + ",\"detail\":"
            + Json.text(detail));
  }

  /** Writes a record of what a request did, where there are records. */
  private void record(
      String kind, @Nullable Scope scope, @Nullable StackTraceElement site, String about) {
    if (records == null) {
      return;
    }
    StringBuilder members = new StringBuilder("\"request\":");
    members.append(Json.text(scope == null ? null : Notes.of(scope).request()));
    String test = RunningTest.get();
    if (test != null) {
      members.append(",\"test\":").append(Json.text(test));
    }
    if (site != null) {
      members.append(",\"site\":").append(Place.of(site).json());
    }
    records.put(kind, members.append(',').append(about).toString());
  }

  @Override
  public void close() {
    Counts.unobserve(counting);
    if (records != null) {
      records.close();
    }
  }
}
