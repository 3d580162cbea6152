package io.antipode.telemetry;

import io.antipode.barrier.Shims;
import io.antipode.runtime.Counts;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Names of datastores as attributes of metrics. Lineages come from outside, and may name what they
 * like: those that are registered here are kept, and the first few others.
 */
public final class BoundedNames {
  private static final int MOST = 64;

  private final Set<String> names = ConcurrentHashMap.newKeySet();

  /** Makes one that knows no name yet. */
  public BoundedNames() {}

  /** Returns the name, or what stands for all others. */
  public String bounded(String name) {
    if (names.contains(name)) {
      return name;
    }
    if (names.size() >= MOST && Shims.of(name).isEmpty()) {
      return Counts.OTHER;
    }
    names.add(name);
    return name;
  }
}
