package io.antipode.barrier;

import io.antipode.Attachment;
import io.antipode.Dependency;
import io.antipode.Lineage;
import io.antipode.Policy;
import io.antipode.Scope;
import io.antipode.Settings;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** What reads of one datastore wait for while the lineage of their request is as it is. */
final class Demand {
  private final Lineage lineage;
  private final Settings settings;

  /** By which outcomes are judged. */
  final Policies policies;

  /** What must be visible, or fulfilled. */
  final Set<Dependency> wanted;

  /** What is let pass, as this process has no shim for its datastore. */
  final List<Outcome> unknown;

  /** Of what no look can show; null where there is no such thing. */
  private final @Nullable Wait hopeless;

  /** Incarnations of servers that showed all of it, and when. */
  private volatile Map<String, Long> proved = Map.of();

  private Demand(Scope scope, Shim shim, Lineage lineage, Settings settings) {
    this.lineage = lineage;
    this.settings = settings;
    Clock clock = shim.clock();
    this.policies = Policies.of(settings, clock);
    List<Outcome> absent = Plan.absent(lineage, scope.own(), settings.onUnknown() != Policy.RAISE);
    this.unknown = absent.stream().filter(Outcome::reported).toList();
    if (absent.isEmpty() && !concerns(lineage, shim.datastore())) {
      this.wanted = Set.of();
      this.hopeless = null;
      return;
    }
    BarrierOptions asked = BarrierOptions.look().withOnly(shim.datastore()).atRead();
    Plan plan = new Plan(lineage, asked, false, clock.now(), scope.own());
    this.wanted = Set.copyOf(plan.pending.getOrDefault(shim.datastore(), Set.of()));
    List<Outcome> settled =
        Stream.concat(
                plan.settled.stream().filter(each -> each.status() != Status.EXCLUDED),
                absent.stream())
            .toList();
    Wait known = new Wait(Map.of(), settled, plan.incomplete, policies, clock, Duration.ZERO);
    this.hopeless = known.result(known.started()).isOk() ? null : known;
  }

  /** Returns what reads by a client must see now, for the lineage that their scope has. */
  static Demand of(Scope scope, Shim shim, Lineage lineage, Settings settings) {
    Demands attached = scope.attachment(Demands.KEY);
    Demand held = attached == null ? null : attached.of.get(shim.datastore());
    if (held != null && held.isOf(lineage, settings)) {
      return held;
    }
    Demand made = new Demand(scope, shim, lineage, settings);
    if (held != null && held.wanted.equals(made.wanted)) {
      made.proved = held.proved;
    }
    scope.attach(Demands.KEY, new Demands(Map.of(shim.datastore(), made)));
    return made;
  }

  @SuppressWarnings("ReferenceEquality") // Neither ever changes.
  private boolean isOf(Lineage current, Settings configured) {
    return lineage == current && settings == configured;
  }

  /** Returns whether anything in a lineage is of a datastore, or may be. */
  private static boolean concerns(Lineage lineage, String datastore) {
    return !lineage.unknown().isEmpty()
        || !lineage.promises().isEmpty()
        || lineage.incomplete().stream()
            .anyMatch(mark -> mark.subject().isEmpty() || mark.subject().equals(datastore))
        || lineage.writes().stream().anyMatch(write -> write.datastore().equals(datastore));
  }

  Settings settings() {
    return settings;
  }

  /** Returns the error of what no look can show; null where there is no such thing. */
  @Nullable UnmetException hopeless() {
    return hopeless == null ? null : UnmetException.of(hopeless.result(hopeless.started()));
  }

  Map<String, Long> proved() {
    return proved;
  }

  void prove(String server, long now) {
    Map<String, Long> shown = new HashMap<>(proved);
    shown.put(server, now);
    proved = Map.copyOf(shown);
  }

  /** What the reads of one request wait for by themselves, by datastore. */
  private static final class Demands implements Attachment<Demands> {
    static final Key<Demands> KEY = new Key<>(Demands.class);

    private final Map<String, Demand> of;

    Demands(Map<String, Demand> of) {
      this.of = Map.copyOf(of);
    }

    @Override
    public Demands joined(Demands later) {
      Map<String, Demand> both = new HashMap<>(of);
      both.putAll(later.of);
      return new Demands(both);
    }

    /** None: a branch that fulfils promises waits for less. */
    @Override
    public Demands branched(Set<String> own) {
      return new Demands(Map.of());
    }
  }
}
