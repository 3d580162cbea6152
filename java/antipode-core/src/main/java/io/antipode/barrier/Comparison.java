package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One poll of each registered store, before a datastore that is unknown here is let pass: does it
 * have that one's log? Stores are asked whose logs have names that no other's can have.
 */
final class Comparison {
  /**
   * What a server says of the first position of a log that it has. Only an unknown log says that it
   * does not have it; anything else is no answer.
   */
  private static final Set<Status> HAS_LOG = Set.of(Status.VISIBLE, Status.LOST);

  private record Asked(WriteId stranger, Shim shim) {}

  private final Clock clock;
  private final Map<Dependency, List<Asked>> asked = new HashMap<>();
  private final Wait wait;

  Comparison(Collection<WriteId> strangers, Policies policies, Clock clock, Duration timeout) {
    this.clock = clock;
    Map<String, Set<Dependency>> pending = new HashMap<>();
    for (String name : Shims.datastores()) {
      Shim shim = looking(name);
      if (shim == null) {
        continue;
      }
      for (WriteId stranger : strangers) {
        WriteId start = shim.logStart(stranger.key());
        if (start != null && !shim.watcher().lacks(start)) {
          pending.computeIfAbsent(name, key -> new HashSet<>()).add(start);
          asked.computeIfAbsent(start, key -> new ArrayList<>()).add(new Asked(stranger, shim));
        }
      }
    }
    wait = new Wait(pending, List.of(), List.of(), policies.raisingUnknown(), clock, timeout);
  }

  /** Two replicas under one name: a barrier that waits for them says so. */
  private static @Nullable Shim looking(String datastore) {
    try {
      return Shims.looking(datastore);
    } catch (ConfigurationException error) {
      return null;
    }
  }

  boolean isNeeded() {
    return !asked.isEmpty();
  }

  Wait await() {
    return wait;
  }

  /** Returns the outcomes of the unknown writes whose log a registered store has. */
  List<Outcome> outcomes() {
    List<Outcome> found = new ArrayList<>();
    for (Outcome shown : wait.result(clock.nanoTime()).outcomes()) {
      if (!HAS_LOG.contains(shown.status())) {
        continue;
      }
      for (Asked each : asked.getOrDefault(shown.dependency(), List.of())) {
        String cause =
            "the store that is registered here as '" + each.shim.datastore() + "' has its log";
        found.add(Outcome.of(each.stranger, Status.UNKNOWN_STORE, cause));
      }
    }
    return found;
  }
}
