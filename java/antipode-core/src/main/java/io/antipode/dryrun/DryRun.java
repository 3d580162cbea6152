package io.antipode.dryrun;

import io.antipode.Settings;
import io.antipode.barrier.ReadObserver;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** What this process's dry run knows and writes. The specification says what each record means. */
final class DryRun implements ReadObserver, JudgedReads.Recorder {
  /** Counts of reads whose values have a lineage that nobody knows. */
  private static final Set<String> UNKNOWN_LINEAGES =
      Set.of("companion_absent", "foreign", "unreadable");

  /** How long the end of a dry run waits for servers that were asked what they are. */
  private static final Duration ROLES = Duration.ofSeconds(2);

  private final String region;
  private final @Nullable Records records;
  private final Evidence evidence = new Evidence();
  private final DeclaredRoles roles = new DeclaredRoles();
  private final JudgedReads reads;
  private final BiConsumer<String, String> counting = this::counted;
  private final Thread atExit = new Thread(this::finish, "antipode-dry-run-end");

  /** Writes records into a directory; without one, findings are counted and logged alone. */
  DryRun(@Nullable Path directory, @Nullable String region) {
    this.region = region == null ? "" : region;
    this.records = directory == null ? null : new Records(directory, region);
    this.reads = new JudgedReads(this.region, this, evidence, roles);
    Counts.observe(counting);
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  @Override
  public void opened(Scope scope, boolean isIncoming) {
    evidence.over();
    record(
        "scope",
        scope,
        isIncoming ? null : site(),
        "\"opened\":\"" + (isIncoming ? "incoming" : "here") + "\"");
  }

  @Override
  public void wrote(Scope scope, Dependency write) {
    evidence.over();
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
  public void reads(Scope scope, Shim client, boolean isAutomatic, boolean isOwn) {
    evidence.over();
    reads.judge(scope, client, isAutomatic, isOwn);
  }

  @Override
  public void showed(Scope scope, Shim client, WriteId write) {
    evidence.over();
    reads.showed(scope, client, write);
  }

  @Override
  public void barrier(BarrierCall call) {
    evidence.over();
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
    evidence.over();
    if (what.equals("write") || what.equals("read")) {
      lint("unscoped-" + what, datastore, "", null, site());
    }
  }

  @Override
  public void unlabelled(Scope scope, String datastore) {
    lint("message-without-lineage", datastore, "", scope, site());
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
    evidence.over();
    return Notes.of(scope).items(Settings.current().egress());
  }

  @Override
  public void beforeCommit(Scope scope, String what, String datastore, StackTraceElement wrote) {
    Place place = Place.of(wrote);
    String detail = what + ", written at " + place.file() + ":" + place.line();
    lint("read-before-commit", datastore, detail, scope, site());
  }

  /** What is sent may depend on writes that have no positions yet. */
  @Override
  public void leaves(Scope scope) {
    unsent(scope, scope.uncommitted());
  }

  @Override
  public void unsent(Scope scope, Set<String> datastores) {
    for (String datastore : new TreeSet<>(datastores)) {
      lint("in-transaction", datastore, "", scope, site());
    }
  }

  /** Returns the nearest caller that is the application's. */
  static StackTraceElement site() {
    return CallSite.frame(Settings.current().appPackages());
  }

  private void lint(
      String lint, String datastore, String detail, @Nullable Scope scope, StackTraceElement site) {
    record("lint", scope, site, lint(lint, datastore, detail));
  }

  /** Returns the members of a lint's record. */
  static String lint(String lint, String datastore, String detail) {
    return "\"lint\":\""
        + lint
        + "\",\"datastore\":"
        + Json.text(datastore)
        + ",\"detail\":"
        + Json.text(detail);
  }

  /** Writes a record of what a request did, where there are records; returns its number. */
  @Override
  public int record(
      String kind, @Nullable Scope scope, @Nullable StackTraceElement site, String about) {
    if (records == null) {
      return Records.UNWRITTEN;
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
    return records.put(kind, members.append(',').append(about).toString());
  }

  @Override
  public void evidence(String about) {
    if (records != null) {
      records.put("evidence", about);
    }
  }

  @Override
  public void settle(Duration timeout) throws InterruptedException {
    long until = System.nanoTime() + timeout.toNanos();
    evidence.settle(timeout);
    roles.settle(Duration.ofNanos(Math.max(until - System.nanoTime(), 0)));
  }

  @Override
  public void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException exiting) {
      return; // It is at it.
    }
    finish();
  }

  /** Observes nothing any more, and closes the file. */
  private void finish() {
    Counts.unobserve(counting);
    evidence.close();
    try {
      roles.settle(ROLES);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    if (records != null) {
      records.close();
    }
  }
}
