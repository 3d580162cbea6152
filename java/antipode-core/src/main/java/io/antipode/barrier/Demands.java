package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.request.Attachment;
import io.antipode.request.Scope;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The demands of one request, by datastore and by who asked, as its scope keeps them. */
final class Demands implements Attachment<Demands> {
  private static final Key<Demands> KEY = new Key<>(Demands.class);

  /** Of reads of a datastore by barriers that were called, or automatically. */
  private record Of(String datastore, boolean isAutomatic) {}

  private final Map<Of, Demand> demands;

  private Demands(Map<Of, Demand> demands) {
    this.demands = Map.copyOf(demands);
  }

  /** Makes the next reads of a datastore wait for a demand, on top of what they wait for. */
  static void leave(Scope scope, String datastore, Demand demand) {
    scope.attach(KEY, new Demands(Map.of(new Of(datastore, demand.isAutomatic()), demand)));
  }

  /** Returns what barriers that were called, or automatic ones, demand of reads; null for none. */
  static @Nullable Demand in(Scope scope, String datastore, boolean isAutomatic) {
    Demands held = scope.attachment(KEY);
    return held == null ? null : held.demands.get(new Of(datastore, isAutomatic));
  }

  @Override
  public Demands joined(Demands later) {
    Map<Of, Demand> both = new HashMap<>(demands);
    later.demands.forEach((of, demand) -> both.merge(of, demand, Demand::joined));
    return new Demands(both);
  }

  @Override
  public Set<Dependency> demanded() {
    return demands.values().stream()
        .filter(demand -> !demand.isAutomatic())
        .flatMap(demand -> demand.wanted().stream())
        .collect(Collectors.toUnmodifiableSet());
  }

  @Override
  public Demands branched(Set<String> own) {
    Map<Of, Demand> branched = new HashMap<>();
    demands.forEach(
        (of, demand) -> {
          Demand less = demand.branched(own);
          if (less != null) {
            branched.put(of, less);
          }
        });
    return new Demands(branched);
  }
}
