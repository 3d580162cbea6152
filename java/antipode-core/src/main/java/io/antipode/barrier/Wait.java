package io.antipode.barrier;

import io.antipode.Policy;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One barrier, or one floor, while it waits: decisions without I/O, threads or clocks. Not
 * thread-safe; all {@code now} are nanoseconds of one clock.
 *
 * <p>A datastore is met by one poll that shows all that is asked of it: two polls may reach servers
 * of different histories. Where others had to be waited for, its server may have been replaced
 * meanwhile: it is asked again before the barrier succeeds.
 */
final class Wait {
  private static final String DOUBTED =
      "it was visible, and was to be seen once more before the barrier succeeds";

  private record Met(long at, Set<Dependency> asked) {}

  private final Policies policies;
  private final long started;
  private final Instant startedAt;
  private final long deadline;
  private final Map<String, Set<Dependency>> pending = new HashMap<>();
  private final Set<Incomplete> incomplete;
  private final Map<Dependency, Outcome> outcomes = new HashMap<>();
  private final Map<String, Duration> etas = new HashMap<>();
  private final Map<String, Met> met = new HashMap<>();

  /** When a poll last left something to wait for. */
  private long late;

  /** Polls since then belong together; null while something is waited for. */
  private @Nullable Long freshFrom;

  private boolean isFatal;

  Wait(
      Map<String, Set<Dependency>> pending,
      Collection<Outcome> settled,
      Collection<Incomplete> incomplete,
      Policies policies,
      Clock clock,
      Duration timeout) {
    this.policies = policies;
    this.started = clock.nanoTime();
    this.startedAt = clock.now();
    this.deadline = started + timeout.toNanos();
    this.late = started;
    this.incomplete = new HashSet<>(incomplete);
    settled.forEach(this::settle);
    pending.forEach(this::await);
  }

  private void await(String datastore, Collection<? extends Dependency> asked) {
    if (asked.isEmpty()) {
      return;
    }
    Set<Dependency> all = new HashSet<>(asked(datastore));
    all.addAll(asked);
    pending.put(datastore, Set.copyOf(all));
    for (Dependency each : asked) {
      outcomes.putIfAbsent(each, Outcome.of(each, Status.NOT_YET, ""));
    }
  }

  private void settle(Outcome outcome) {
    Outcome settled = policies.settled(outcome);
    outcomes.put(settled.dependency(), settled);
    if (!settled.isMet() && !settled.status().isPending()) {
      isFatal = true;
    }
  }

  long started() {
    return started;
  }

  long deadline() {
    return deadline;
  }

  /** Returns the datastores that no poll has met. */
  Set<String> pending() {
    return Set.copyOf(pending.keySet());
  }

  /** Returns all that is asked of a datastore; empty where it is met. */
  Set<Dependency> asked(String datastore) {
    return pending.getOrDefault(datastore, Set.of());
  }

  /** Returns whether nothing is pending, or waiting longer cannot make the barrier succeed. */
  boolean isFinished() {
    boolean cannotPass = !incomplete.isEmpty() && policies.onIncomplete() == Policy.RAISE;
    return isFatal || cannotPass || pending.isEmpty();
  }

  /** Waits for the primary's position in place of what marks say is missing. */
  void discharge(String datastore, Collection<WriteId> writes, Collection<Incomplete> marks) {
    incomplete.removeAll(marks);
    await(datastore, writes);
  }

  /** Merges what was found out about dependencies that had been let pass. */
  void unmet(Collection<Outcome> found) {
    found.forEach(this::settle);
  }

  /** Leaves writes to the reads that follow. */
  void defer(Collection<WriteId> writes) {
    writes.forEach(write -> settle(Outcome.of(write, Status.DEFERRED, "")));
  }

  /** Merges what a server showed at one poll. */
  void record(String datastore, Observation observation, long now) {
    Set<Dependency> asked = pending.get(datastore);
    if (asked == null) {
      return;
    }
    Duration eta = observation.eta();
    if (eta != null) {
      etas.put(datastore, eta);
    }
    boolean isLate = false;
    for (Dependency each : asked) {
      isLate |= judge(each, observation, now);
    }
    if (isLate) {
      waitOn(now);
      return;
    }
    pending.remove(datastore);
    met.put(datastore, new Met(now, asked));
    if (pending.isEmpty()) {
      doubt(now);
    }
  }

  /** Merges an outcome; returns whether it is pending. */
  private boolean judge(Dependency dependency, Observation observation, long now) {
    Observation.Said said = observation.about(dependency);
    if (dependency instanceof Promise promise && said.status() == Status.NOT_YET) {
      Observation.Said judged = policies.judge(promise, startedAt.plusNanos(now - started));
      said =
          judged.cause().isEmpty() ? new Observation.Said(judged.status(), said.cause()) : judged;
    }
    Outcome held = outcomes.get(dependency);
    if (held != null
        && held.isMet()
        && held.status() == said.status()
        && held.server().equals(observation.server())) {
      return false; // As before: how long it was waited for stays.
    }
    settle(outcome(dependency, said.status(), now, observation.server(), said.cause()));
    return said.status().isPending();
  }

  private Outcome outcome(
      Dependency dependency, Status status, long now, String server, String cause) {
    return new Outcome(dependency, status, Duration.ofNanos(now - started), server, cause, false);
  }

  /** Notes that a poll left something to wait for. */
  void waitOn(long now) {
    late = now;
    freshFrom = null;
  }

  /** Asks again for what was met before others had to be waited for. */
  private void doubt(long now) {
    if (freshFrom == null) {
      freshFrom = Math.max(late, now - Pacer.MOST_NS);
    }
    long from = freshFrom;
    met.forEach(
        (datastore, shown) -> {
          if (shown.at < from) {
            pending.put(datastore, shown.asked);
            for (Dependency each : shown.asked) {
              outcomes.computeIfPresent(
                  each, (key, held) -> held.withStatus(Status.NOT_YET, DOUBTED));
            }
          }
        });
  }

  /** Notes that a poll failed; the next one may not. */
  void unreachable(String datastore, String cause, long now) {
    Set<Dependency> asked = pending.get(datastore);
    if (asked == null) {
      return;
    }
    waitOn(now);
    for (Dependency each : asked) {
      outcomes.put(each, outcome(each, Status.UNREACHABLE, now, "", cause));
    }
  }

  /** Notes that polling again cannot help: what is pending there is undecidable. */
  void failed(String datastore, String cause, long now) {
    Set<Dependency> asked = pending.remove(datastore);
    if (asked != null) {
      asked.forEach(each -> settle(outcome(each, Status.UNDECIDABLE, now, "", cause)));
    }
    if (pending.isEmpty()) {
      doubt(now);
    }
  }

  /** Returns how things stand; whatever is pending then is unmet. */
  BarrierResult result(long now) {
    @Nullable Duration eta =
        etas.entrySet().stream()
            .filter(entry -> pending.containsKey(entry.getKey()))
            .map(Map.Entry::getValue)
            .max(Comparator.naturalOrder())
            .orElse(null);
    return new BarrierResult(
        outcomes.values().stream().sorted(Outcome.ORDER).toList(),
        Duration.ofNanos(now - started),
        eta,
        incomplete,
        policies.onIncomplete() == Policy.REPORT);
  }
}
