package io.antipode.barrier;

import io.antipode.OnStale;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What reads of one datastore wait for automatically while their request depends on the same. Its
 * time is the request's. When that is used up, or no poll can help, the read is answered all the
 * same, and counted, unless stale reads are to throw.
 */
final class AutomaticDemand extends Demand {
  /** A server that is far away is asked all the same, instead of giving its connection up. */
  private static final Duration LEAST_LOOK = Duration.ofMillis(500);

  private final Lineage lineage;
  private final Settings settings;
  private final @Nullable Demand called;
  private final boolean moves;
  private final Found found;

  private AutomaticDemand(
      Scope scope,
      Lineage lineage,
      Settings settings,
      @Nullable Demand called,
      boolean moves,
      Found found) {
    super(without(called, found.wanted), found.policies, scope.allowance(), Map.of());
    this.lineage = lineage;
    this.settings = settings;
    this.called = called;
    this.moves = moves;
    this.found = found;
  }

  private static Set<Dependency> without(@Nullable Demand called, Set<Dependency> wanted) {
    if (called == null) {
      return wanted;
    }
    Set<Dependency> rest = new HashSet<>(wanted);
    rest.removeAll(called.wanted());
    return rest;
  }

  /**
   * Returns what the next read by a client must see besides what barriers that were called demand;
   * null for nothing at all.
   */
  static @Nullable AutomaticDemand of(Scope scope, Shim client, @Nullable Demand called) {
    Lineage lineage = scope.known(); // What reads deferred would have to be asked for.
    if (lineage.isEmpty()) {
      return null;
    }
    Settings settings = Settings.current();
    AutomaticDemand held =
        Demands.in(scope, client.datastore(), true) instanceof AutomaticDemand earlier
            ? earlier
            : null;
    boolean moves =
        settings.onStale() == OnStale.PRIMARY && client.readsFrom() == ReadsFrom.REPLICA;
    if (held != null && held.moves == moves && held.isOf(lineage, settings, called)) {
      return held;
    }
    Found found = Found.of(scope, client, lineage, settings);
    AutomaticDemand made = new AutomaticDemand(scope, lineage, settings, called, moves, found);
    if (held != null && held.wanted().equals(made.wanted())) {
      made.proveAs(held);
    }
    Demands.leave(scope, client.datastore(), made);
    return made;
  }

  @SuppressWarnings("ReferenceEquality") // None of them ever changes.
  private boolean isOf(Lineage current, Settings configured, @Nullable Demand barriers) {
    return lineage == current && settings == configured && called == barriers;
  }

  /** Returns what is let pass, as this process has no shim for its datastore. */
  List<Outcome> unknown() {
    return found.unknown;
  }

  /** Returns whether there is something that no poll can show. */
  boolean isFlawed() {
    return found.hopeless != null;
  }

  /** Returns the error of what no poll can show; null where there is no such thing. */
  @Nullable UnmetException flaw() {
    Wait wait = found.hopeless;
    UnmetException error = wait == null ? null : UnmetException.of(wait.result(wait.started()));
    return error == null ? null : marked(error);
  }

  @Override
  boolean isAutomatic() {
    return true;
  }

  @Override
  boolean isThrown() {
    return moves || settings.onStale() == OnStale.RAISE;
  }

  @Override
  boolean moves() {
    return moves;
  }

  @Override
  Duration leastLook() {
    return LEAST_LOOK;
  }

  /** Returns the later one: it is of more. */
  @Override
  Demand joined(Demand later) {
    return later;
  }

  /** Returns null: a branch that fulfils promises waits for less. */
  @Override
  @Nullable Demand branched(Set<String> own) {
    return null;
  }

  /** Returns whether anything in a lineage is of a datastore, or may be. */
  static boolean concerns(Lineage lineage, String datastore) {
    return !lineage.unknown().isEmpty()
        || !lineage.promises().isEmpty()
        || lineage.incomplete().stream()
            .anyMatch(mark -> mark.subject().isEmpty() || mark.subject().equals(datastore))
        || lineage.writes().stream().anyMatch(write -> write.datastore().equals(datastore));
  }

  /**
   * What a lineage demands of a datastore.
   *
   * @param hopeless of what no poll can show; null where there is no such thing
   */
  private record Found(
      Set<Dependency> wanted, Policies policies, List<Outcome> unknown, @Nullable Wait hopeless) {

    static Found of(Scope scope, Shim shim, Lineage lineage, Settings settings) {
      Clock clock = shim.clock();
      Policies policies = Policies.of(settings, clock);
      List<Outcome> absent =
          Plan.absent(lineage, scope.own(), settings.onUnknown() != Policy.RAISE);
      List<Outcome> unknown = absent.stream().filter(Outcome::reported).toList();
      if (absent.isEmpty() && !concerns(lineage, shim.datastore())) {
        return new Found(Set.of(), policies, unknown, null);
      }
      BarrierOptions asked = BarrierOptions.check().withOnly(shim.datastore()).atRead();
      Plan plan = new Plan(lineage, asked, false, clock.now(), scope.own(), true);
      List<Outcome> settled =
          Stream.concat(
                  plan.settled.stream().filter(each -> each.status() != Status.EXCLUDED),
                  absent.stream())
              .toList();
      Wait known = new Wait(Map.of(), settled, plan.incomplete, policies, clock, Duration.ZERO);
      return new Found(
          plan.pending.getOrDefault(shim.datastore(), Set.of()),
          policies,
          unknown,
          known.result(known.started()).isOk() ? null : known);
    }
  }
}
