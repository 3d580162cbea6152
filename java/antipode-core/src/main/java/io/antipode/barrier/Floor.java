package io.antipode.barrier;

import io.antipode.Dependency;
import io.antipode.Promise;
import io.antipode.Scope;
import io.antipode.WriteId;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What the next read of one datastore must see, on whatever connection it is made.
 *
 * <p>An instrumented connection asks its server, in the read's own round trip where it can, and
 * answers the read only where {@link #accepts} says so; otherwise it holds the read back with
 * {@link #hold}, or with a {@link HeldRead}. The timeout is spent only while holding.
 */
public final class Floor {
  /** What a look gets although the time is up. */
  private static final Duration LEAST_LOOK = Duration.ofMillis(50);

  /** Looks once on the connection that will read. */
  public interface Look {
    /**
     * Returns what it shows.
     *
     * @param timeout the longest that it may last
     */
    Observation observe(Duration timeout) throws Exception;
  }

  private final String datastore;
  private final Set<Dependency> wanted;
  private final Policies policies;
  private final Clock clock;

  /** Incarnations of servers that showed all of it, and when. */
  private volatile Map<String, Long> proved;

  private volatile Duration left;

  Floor(
      String datastore,
      Set<Dependency> wanted,
      Duration timeout,
      Policies policies,
      Set<String> provedOn,
      Clock clock) {
    this.datastore = datastore;
    this.wanted = Set.copyOf(wanted);
    this.left = timeout;
    this.policies = policies;
    this.clock = clock;
    Map<String, Long> shown = new HashMap<>();
    provedOn.forEach(server -> shown.put(server, clock.nanoTime()));
    this.proved = Map.copyOf(shown);
  }

  /** Returns what the next read by a client must see; null where nothing. */
  public static @Nullable Floor current(Shim client) {
    Scope scope = Scope.currentOrNull();
    return scope == null ? null : Floors.in(scope, client.datastore());
  }

  /** Returns a floor that demands both; the later barrier's timeout and policies hold. */
  Floor raised(Floor later) {
    Set<Dependency> both = new HashSet<>(wanted);
    both.addAll(later.wanted);
    Floor raised = new Floor(datastore, both, later.left, later.policies, Set.of(), later.clock);
    Map<String, Long> shown = new HashMap<>(proved);
    shown.keySet().retainAll(later.proved.keySet());
    shown.replaceAll((server, at) -> Math.min(at, later.proved.getOrDefault(server, at)));
    raised.proved = Map.copyOf(shown);
    return raised;
  }

  /** Returns this floor for the branch that fulfils promises of these ids itself. */
  Floor without(Set<String> own) {
    Set<Dependency> less = new HashSet<>(wanted);
    less.removeIf(each -> each instanceof Promise promise && own.contains(promise.id()));
    Floor without = new Floor(datastore, less, left, policies, Set.of(), clock);
    without.proved = proved;
    return without;
  }

  /** Returns the datastore whose reads it is for. */
  public String datastore() {
    return datastore;
  }

  Set<Dependency> wanted() {
    return wanted;
  }

  Clock clock() {
    return clock;
  }

  /** Returns what must be visible. */
  public List<WriteId> writes() {
    return wanted.stream().filter(WriteId.class::isInstance).map(WriteId.class::cast).toList();
  }

  /** Returns what must be fulfilled; empty where no shim of the datastore looks for promises. */
  public List<Promise> promises() {
    return wanted.stream().filter(Promise.class::isInstance).map(Promise.class::cast).toList();
  }

  /**
   * Returns whether a server showed all of it before. A pinned connection to it need not ask again.
   */
  public boolean isProvedOn(String server) {
    return proved.containsKey(server);
  }

  /** Returns whether a server showed all of it in the last so many. */
  public boolean isProvedOn(String server, Duration within) {
    Long shown = proved.get(server);
    return shown != null && clock.nanoTime() - shown < within.toNanos();
  }

  /** Returns how long a look may last: what is left, but enough for one honest try. */
  public Duration lookTimeout() {
    return left.compareTo(LEAST_LOOK) > 0 ? left : LEAST_LOOK;
  }

  /**
   * Returns whether a read made at or after this look may be answered.
   *
   * @throws UnmetException if waiting longer cannot help
   */
  public boolean accepts(Observation observation) {
    return judge(begin(), observation);
  }

  /** Begins to hold a read back, by a client that pauses itself. */
  public HeldRead hold(Shim client) {
    return new HeldRead(this, Shims.watcherBeside(Objects.requireNonNull(client, "client")));
  }

  /**
   * Holds a read back until a look shows the floor; then read on that connection.
   *
   * @param client whose datastore's watcher looks for all held reads, which themselves look rarely
   *     then
   * @throws UnmetException if the time is up, or waiting longer cannot help
   * @throws Exception what the look throws, where there was time left
   */
  public void hold(Shim client, Look look) throws Exception {
    try (HeldRead read = hold(client)) {
      try {
        for (Duration pause = read.take(look.observe(read.lookTimeout()));
            pause != null;
            pause = read.take(look.observe(read.lookTimeout()))) {
          read.pause(pause);
        }
      } catch (UnreachableException error) {
        read.failed(error);
      }
    }
  }

  /**
   * Ends a read whose own connection showed nothing until the time was up.
   *
   * @throws UnmetException always
   */
  public void expire(UnreachableException cause) {
    Wait wait = begin();
    spend(left);
    wait.unreachable(datastore, Watcher.why(cause), clock.nanoTime());
    raiseIfUnmet(wait, clock.nanoTime());
  }

  Wait begin() {
    return new Wait(Map.of(datastore, wanted), List.of(), List.of(), policies, clock, left);
  }

  boolean judge(Wait wait, Observation observation) {
    long now = clock.nanoTime();
    wait.record(datastore, observation, now);
    if (!wait.isFinished()) {
      return false;
    }
    raiseIfUnmet(wait, now);
    Map<String, Long> shown = new HashMap<>(proved);
    shown.put(observation.server(), now);
    proved = Map.copyOf(shown);
    return true;
  }

  static void raiseIfUnmet(Wait wait, long now) {
    UnmetException error = UnmetException.of(wait.result(now));
    if (error != null) {
      throw error;
    }
  }

  void spend(Duration held) {
    Duration rest = left.minus(held);
    left = rest.isNegative() ? Duration.ZERO : rest;
  }
}
