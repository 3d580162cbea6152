package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.runtime.Allowance;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a barrier that was called wants the next reads of a datastore to see. */
sealed class Demand permits AutomaticDemand {
  /** What a poll gets although the time is up. */
  static final Duration LEAST_LOOK = Duration.ofMillis(50);

  private final Set<Dependency> wanted;
  private final Policies policies;
  private final Allowance allowance;

  /** Incarnations of servers that showed all of it, and when. */
  private volatile Map<String, Long> proved;

  Demand(Set<Dependency> wanted, Policies policies, Allowance allowance, Map<String, Long> proved) {
    this.wanted = Set.copyOf(wanted);
    this.policies = policies;
    this.allowance = allowance;
    this.proved = Map.copyOf(proved);
  }

  /** Returns what must be visible, or fulfilled. */
  final Set<Dependency> wanted() {
    return wanted;
  }

  final Policies policies() {
    return policies;
  }

  /** Returns the time for holding reads back. */
  final Allowance allowance() {
    return allowance;
  }

  /** Returns whether no barrier was called: reads wait automatically. */
  boolean isAutomatic() {
    return false;
  }

  /** Returns whether a read that is not shown all of it throws, instead of being answered. */
  boolean isThrown() {
    return true;
  }

  /** Returns whether such a read may be made at the primary instead. */
  boolean moves() {
    return false;
  }

  /** Returns the error of a read that is not shown all of it, which says where it may be made. */
  final UnmetException marked(UnmetException error) {
    return moves() ? error.forPrimary() : error;
  }

  /** Returns how long a poll may last although the time is up. */
  Duration leastLook() {
    return LEAST_LOOK;
  }

  /** Notes that a server shows all of it. */
  final void prove(String server, long now) {
    Map<String, Long> shown = new HashMap<>(proved);
    shown.put(server, now);
    proved = Map.copyOf(shown);
  }

  /** Returns when a server showed all of it last; null where it never did. */
  final @Nullable Long proved(String server) {
    return proved.get(server);
  }

  /** Returns whether some server showed all of it. */
  final boolean isProved() {
    return !proved.isEmpty();
  }

  final void proveAs(Demand earlier) {
    proved = earlier.proved;
  }

  /** Returns both; the later barrier's time and policies hold. */
  Demand joined(Demand later) {
    Set<Dependency> both = new HashSet<>(wanted);
    both.addAll(later.wanted);
    Map<String, Long> shown = new HashMap<>(proved);
    shown.keySet().retainAll(later.proved.keySet());
    shown.replaceAll((server, at) -> Math.min(at, later.proved.getOrDefault(server, at)));
    return new Demand(both, later.policies, later.allowance, shown);
  }

  /** Returns it for a branch that fulfils promises of these ids itself; null where it has none. */
  @Nullable Demand branched(Set<String> own) {
    Set<Dependency> less = new HashSet<>(wanted);
    less.removeIf(each -> each instanceof Promise promise && own.contains(promise.id()));
    return new Demand(less, policies, allowance, proved);
  }
}
