package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Observer;
import io.antipode.request.Observers;
import io.antipode.request.OpenWrites;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Allowance;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** One barrier or check: what those that block, return a future or call back have in common. */
final class Call {
  private final BarrierOptions options;
  private final boolean isCheck;
  private final Clock clock;
  private final @Nullable Scope scope;
  private final Duration timeout;
  private final Policies policies;
  private final Mode mode;
  private final Plan plan;

  /** What it would wait for outside of a dry run. */
  private final Plan wanted;

  private final Wait wait;
  private final @Nullable StackTraceElement site;

  Call(BarrierOptions options, boolean isCheck) {
    this.options = options;
    this.isCheck = isCheck;
    this.clock = options.clock();
    this.scope = Scope.currentOrNull();
    Settings settings = Settings.current();
    this.timeout = bounded(options.timeout(), settings.maxTimeout());
    Policy onUnknown = options.onUnknown();
    Policy onIncomplete = options.onIncomplete();
    this.mode = Objects.requireNonNullElse(options.mode(), settings.mode());
    this.site = Observers.dryRun() == null ? null : CallSite.frame(settings.appPackages());
    this.policies =
        new Policies(
            options.returnsUnmet(),
            onUnknown == null ? settings.onUnknown() : onUnknown,
            onIncomplete == null ? settings.onIncomplete() : onIncomplete,
            settings.horizon(),
            Math.floorDiv(clock.now().getEpochSecond(), 3_600L));
    Lineage lineage = lineage(settings);
    this.plan = planned(lineage, mode != Mode.ENFORCE);
    this.wanted = mode == Mode.DRY_RUN ? withoutDryRun(lineage) : plan;
    if (options.isAtRead() && scope == null && !(plan.pending.isEmpty() && plan.fenced.isEmpty())) {
      throw new ConfigurationException(
          "a barrier at the read leaves a floor for later reads: call it within Antipode.scope()");
    }
    this.wait = started();
    if (scope != null && mode != Mode.OFF) {
      tellOfUnseen(scope, lineage);
    }
  }

  /** Reports transactions of this request whose writes it cannot wait for: they are open. */
  private void tellOfUnseen(Scope request, Lineage lineage) {
    boolean isGiven = options.text() != null || options.lineage() != null;
    for (OpenWrites.Transaction open : OpenWrites.in(request)) {
      String name = open.datastore();
      if (options.asks(name) && (!isGiven || isOf(lineage, name))) {
        OpenWrites.tellOfUnseen("barrier", request, open);
      }
    }
  }

  private static boolean isOf(Lineage lineage, String datastore) {
    return Stream.concat(lineage.writes().stream(), lineage.promises().stream())
        .anyMatch(each -> each.datastore().equals(datastore));
  }

  private Plan planned(Lineage lineage, boolean isOff) {
    Set<Promise.Name> own = scope == null ? Set.of() : scope.own();
    return new Plan(lineage, options, isOff, clock.now(), own, scope != null);
  }

  private Plan withoutDryRun(Lineage lineage) {
    try {
      return planned(lineage, false);
    } catch (ConfigurationException error) { // Not thrown here: it is said instead.
      Counts.LOG.warning(() -> "this barrier would fail outside of the dry run: " + error);
      return plan;
    }
  }

  private static Duration bounded(Duration timeout, Duration most) {
    if (timeout.compareTo(most) <= 0) {
      return timeout;
    }
    Counts.logOnce(
        "max_timeout",
        "",
        timeout,
        () -> "a barrier asks for " + timeout + " and gets max_timeout=" + most);
    return most;
  }

  private Lineage lineage(Settings settings) {
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    String text = options.text();
    if (text != null) {
      return mode == Mode.DRY_RUN
          ? LineageText.readable("", text)
          : Lineage.deserialize(text).received(clock.now(), settings.maxPromise());
    }
    Lineage given = options.lineage();
    if (given != null) {
      return given;
    }
    if (scope != null) {
      return scope.lineage();
    }
    if (!Scope.isStoppedInCurrent()) {
      Policy policy = Objects.requireNonNullElse(settings.onUnscoped(), Policy.RAISE);
      Recording.unscoped("barrier", "", mode == Mode.ENFORCE ? policy : Policy.REPORT);
    }
    return Lineage.empty();
  }

  private Wait started() {
    List<Outcome> settled = new ArrayList<>();
    for (Outcome outcome : plan.settled) {
      settled.add(mode == Mode.DRY_RUN ? outcome.withStatus(outcome.status(), "dry run") : outcome);
    }
    Map<String, Set<Dependency>> pending = plan.pending;
    if (options.isAtRead() || isCheck) {
      pending = new HashMap<>();
      for (Map.Entry<String, Set<Dependency>> each : plan.pending.entrySet()) {
        if (isLeftToReads(each.getKey())) {
          each.getValue().forEach(asked -> settled.add(Outcome.of(asked, Status.DEFERRED, "")));
        } else {
          pending.put(each.getKey(), each.getValue());
        }
      }
    }
    return new Wait(pending, settled, plan.incomplete, policies, clock, timeout);
  }

  /**
   * Returns whether its reads wait, and this call does not. A check asks no primary what a replica
   * shows: it has all that was written.
   */
  private boolean isLeftToReads(String datastore) {
    return options.isAtRead() || (isCheck && Shims.isSeenByReadsAlone(datastore));
  }

  Clock clock() {
    return clock;
  }

  /** Returns how long it is until the deadline. */
  Duration left() {
    return Duration.ofNanos(Math.max(wait.deadline() - clock.nanoTime(), 0));
  }

  Duration leftForLook() {
    return least(left(), Watcher.LOOK);
  }

  private static Duration least(Duration one, Duration other) {
    return one.compareTo(other) < 0 ? one : other;
  }

  /** Polls what is registered: a datastore that is unknown here may be one of these. */
  @Nullable Comparison comparison() {
    if (policies.onUnknown() != null) {
      return null;
    }
    List<WriteId> strangers = new ArrayList<>();
    for (Outcome outcome : plan.settled) {
      if (outcome.reported() && outcome.dependency() instanceof WriteId write) {
        strangers.add(write);
      }
    }
    if (strangers.isEmpty()) {
      return null;
    }
    Comparison comparison = new Comparison(strangers, policies, clock, leftForLook());
    return comparison.isNeeded() ? comparison : null;
  }

  /**
   * Merges what it found.
   *
   * @throws ConfigurationException if one store has two names, and the barrier raises what is unmet
   */
  void compared(Comparison comparison) {
    List<Outcome> found = comparison.outcomes();
    wait.unmet(found);
    if (!found.isEmpty() && !policies.returnsUnmet()) {
      throw new ConfigurationException(
          Outcome.describe(found) + ": one store has two names; spell it alike in every service");
    }
  }

  /** Begins to ask primaries for their positions, all at once. */
  Fences askFences() {
    return new Fences(plan.fenced.keySet(), fenceTimeout());
  }

  /** Returns how long to wait for them: the other half of the time is for polls. */
  Duration fenceTimeout() {
    return least(left().dividedBy(2), Watcher.CONNECT);
  }

  /**
   * Waits for the positions that are there by now, in place of what was dropped. A primary that
   * does not answer, or has no position, leaves the lineage incomplete, as it was: any of them may
   * be the one that was written to.
   */
  void raiseFences(Fences fences) {
    fences.end(
        (datastore, writes) -> {
          if (writes.isEmpty()) { // A primary that has lost everything says so in the same way.
            Counts.count("fence_failed", datastore);
            return;
          }
          Counts.count("fences", datastore);
          plan.pending.computeIfAbsent(datastore, name -> new HashSet<>()).addAll(writes);
          Set<Incomplete> marks = plan.fenced.getOrDefault(datastore, Set.of());
          boolean isLater = isLeftToReads(datastore);
          wait.discharge(datastore, isLater ? Set.of() : writes, marks);
          if (isLater) {
            wait.defer(writes);
          }
        });
  }

  Wait await() {
    return wait;
  }

  /**
   * Returns the result, after leaving in the scope what later reads need.
   *
   * @throws UnmetException as {@link Barriers#barrier}
   */
  BarrierResult conclude() {
    BarrierResult result = wait.result(clock.nanoTime());
    leaveAged(result);
    countUnknownStores(result.outcomes());
    UnmetException error = UnmetException.of(result);
    Counts.count(error == null ? "barrier_ok" : "barrier_" + error.code());
    if (error == null) {
      leaveFloors(result);
      observe();
    } else if (!policies.returnsUnmet()) { // What is returned is its caller's to use.
      error.log("barrier");
      throw error;
    }
    return result;
  }

  private void observe() {
    Observer observer = Observers.dryRun();
    if (observer == null || site == null || mode == Mode.OFF) {
      return;
    }
    List<Dependency> guards = wanted.pending.values().stream().flatMap(Set::stream).toList();
    boolean isNothing = !isCheck && guards.isEmpty() && wanted.fenced.isEmpty();
    observer.barrier(
        new Observer.BarrierCall(
            scope,
            site,
            options.isAtRead(),
            options.only(),
            options.exclude(),
            mode == Mode.DRY_RUN,
            guards,
            isNothing,
            wanted.settled.isEmpty()));
  }

  /** Aged entries pass, are counted, and leave the scope. */
  private void leaveAged(BarrierResult result) {
    for (Outcome outcome : result.outcomes()) {
      if (outcome.status() == Status.AGED) {
        Counts.count("aged", outcome.dependency().datastore());
        if (scope != null && outcome.dependency() instanceof WriteId write) {
          scope.remove(write);
        } else if (scope != null && outcome.dependency() instanceof Promise promise) {
          scope.forget(promise);
        }
      }
    }
  }

  /** Counts and, once for each name, logs datastores that are unknown here and were let pass. */
  static void countUnknownStores(Collection<Outcome> outcomes) {
    Set<String> unknown = new TreeSet<>();
    for (Outcome outcome : outcomes) {
      if (outcome.status() == Status.UNKNOWN_STORE && outcome.reported()) {
        unknown.add(outcome.dependency().datastore());
      }
    }
    for (String name : unknown) {
      Counts.count("unknown_store", name);
      Counts.logOnce(
          "unknown_store",
          name,
          "",
          () ->
              "a lineage depends on "
                  + name
                  + ", which nothing here can wait for: it was let pass");
    }
  }

  /** Later reads may come by other connections: each satisfies the floor before it reads. */
  private void leaveFloors(BarrierResult result) {
    if (scope == null) {
      return;
    }
    for (Map.Entry<String, Set<Dependency>> asked : plan.pending.entrySet()) {
      String datastore = asked.getKey();
      List<Shim> holding = Shims.of(datastore).stream().filter(Shim::holdsReads).toList();
      Set<Dependency> wanted = new HashSet<>(asked.getValue());
      if (holding.stream().noneMatch(Shim::pollsForPromises)) {
        wanted.removeIf(Promise.class::isInstance);
      }
      if (!holding.isEmpty() && !wanted.isEmpty()) {
        Map<String, Long> proved = new HashMap<>();
        server(result, datastore).forEach(server -> proved.put(server, clock.nanoTime()));
        Demands.leave(
            scope, datastore, new Demand(wanted, policies, new Allowance(timeout), proved));
      }
    }
  }

  /** Returns the incarnation that showed all of a datastore; empty for several. */
  private static Set<String> server(BarrierResult result, String datastore) {
    Set<String> servers = new HashSet<>();
    for (Outcome outcome : result.outcomes()) {
      if (outcome.dependency().datastore().equals(datastore) && !outcome.server().isEmpty()) {
        servers.add(outcome.server());
      }
    }
    return servers.size() == 1 ? servers : Set.of();
  }
}
