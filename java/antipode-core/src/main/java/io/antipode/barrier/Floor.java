package io.antipode.barrier;

import io.antipode.Dependency;
import io.antipode.Observer;
import io.antipode.Observers;
import io.antipode.OpenWrites;
import io.antipode.Promise;
import io.antipode.Recording;
import io.antipode.Scope;
import io.antipode.StaleSnapshotException;
import io.antipode.WriteId;
import io.antipode.runtime.Allowance;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What the next read of one datastore must see, on whatever connection it is made.
 *
 * <p>An instrumented connection asks its server, in the read's own round trip where it can, and
 * answers the read only where {@link #accepts} says so; otherwise it holds the read back with
 * {@link #hold}, or with a {@link HeldRead}. The timeout is spent only while holding.
 */
public sealed class Floor permits AutomaticFloor {
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
  private final Allowance allowance;

  /** Incarnations of servers that showed all of it, and when. */
  private volatile Map<String, Long> proved;

  Floor(
      String datastore,
      Set<Dependency> wanted,
      Duration timeout,
      Policies policies,
      Set<String> provedOn,
      Clock clock) {
    this(datastore, wanted, new Allowance(timeout), policies, shownNow(provedOn, clock), clock);
  }

  Floor(
      String datastore,
      Set<Dependency> wanted,
      Allowance allowance,
      Policies policies,
      Map<String, Long> proved,
      Clock clock) {
    this.datastore = datastore;
    this.wanted = Set.copyOf(wanted);
    this.allowance = allowance;
    this.policies = policies;
    this.proved = Map.copyOf(proved);
    this.clock = clock;
  }

  private static Map<String, Long> shownNow(Set<String> servers, Clock clock) {
    Map<String, Long> shown = new HashMap<>();
    servers.forEach(server -> shown.put(server, clock.nanoTime()));
    return shown;
  }

  /**
   * Returns what the next read by a client must see: what barriers left to it and, where reads wait
   * by themselves, what its request depends on there. Null where nothing: the read goes its way.
   *
   * <p>Asked once for each read, in the application's thread, just before it is sent. The read is
   * over when that thread goes on; where it may not be, {@link #currentAhead} asks.
   *
   * @throws UnmetException if that is known without a look, and stale reads are to throw
   */
  public static @Nullable Floor current(Shim client) {
    return next(client, true, null);
  }

  /**
   * As {@link #current(Shim)}, of a read that is made through a connection or session that may have
   * a transaction.
   *
   * @param who that one, as {@link Recording#recordUncommitted} has it
   */
  public static @Nullable Floor current(Shim client, Object who) {
    return next(client, true, who);
  }

  /** As {@link #current(Shim)}, of a read that may go on when this thread does. */
  public static @Nullable Floor currentAhead(Shim client) {
    return next(client, false, null);
  }

  private static @Nullable Floor next(Shim client, boolean isOwn, @Nullable Object who) {
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      if (!Scope.isStoppedInCurrent()) {
        Recording.unscoped("read", client.datastore(), null);
      }
      return null;
    }
    Observer observer = Observers.dryRun();
    if (observer != null && client.readsFrom() == ReadsFrom.REPLICA) {
      boolean isAutomatic = client.holdsReads() && Automatic.isChosen(client);
      observer.reads(scope, client, isAutomatic, isOwn);
    }
    tellOfUnseen(client.datastore(), scope, who);
    return floor(client, scope, true);
  }

  /** Tells of a read that the writes of a transaction of another connection are hidden from. */
  private static void tellOfUnseen(String datastore, Scope scope, @Nullable Object who) {
    for (OpenWrites.Transaction open : OpenWrites.in(scope)) {
      if (open.datastore().equals(datastore) && (who == null || !open.isOf(who))) {
        OpenWrites.tellOfUnseen("read", scope, open);
        return;
      }
    }
  }

  /**
   * Returns what more of a read must see that was asked for already, or what may turn out to be no
   * read; as {@link #current} otherwise.
   */
  public static @Nullable Floor currentAgain(Shim client) {
    Scope scope = Scope.currentOrNull();
    return scope == null ? null : floor(client, scope, false);
  }

  private static @Nullable Floor floor(Shim client, Scope scope, boolean reads) {
    Floor explicit = Floors.in(scope, client.datastore());
    return Automatic.applies(client) ? Automatic.floor(scope, client, explicit, reads) : explicit;
  }

  /** Returns a floor that demands both; the later barrier's timeout and policies hold. */
  Floor raised(Floor later) {
    Set<Dependency> both = new HashSet<>(wanted);
    both.addAll(later.wanted);
    Map<String, Long> shown = new HashMap<>(proved);
    shown.keySet().retainAll(later.proved.keySet());
    shown.replaceAll((server, at) -> Math.min(at, later.proved.getOrDefault(server, at)));
    Allowance left = new Allowance(later.left());
    return new Floor(datastore, both, left, later.policies, shown, later.clock);
  }

  /** Returns this floor for the branch that fulfils promises of these ids itself. */
  Floor without(Set<String> own) {
    Set<Dependency> less = new HashSet<>(wanted);
    less.removeIf(each -> each instanceof Promise promise && own.contains(promise.id()));
    return new Floor(datastore, less, new Allowance(left()), policies, proved, clock);
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

  Map<String, Long> proved() {
    return proved;
  }

  /** Returns for how long reads may still be held back. */
  Duration left() {
    return allowance.left(clock.nanoTime());
  }

  Allowance allowance() {
    return allowance;
  }

  /** Returns how long a look may last although the time is up. */
  Duration leastLook() {
    return LEAST_LOOK;
  }

  /** Returns how long a look may last: what is left, but enough for one honest try. */
  public Duration lookTimeout() {
    Duration left = left();
    return left.compareTo(leastLook()) > 0 ? left : leastLook();
  }

  /**
   * Returns how long the server may block during a look: what is left, but no longer than is given.
   */
  public Duration blockTimeout(Duration longest) {
    Duration left = left();
    if (left.compareTo(LEAST_LOOK) <= 0) {
      return Duration.ZERO;
    }
    return left.compareTo(longest) < 0 ? left : longest;
  }

  /** Returns what holds the read back, one after the other, for a client that pauses itself. */
  public List<Floor> stages() {
    return List.of(this);
  }

  /** Returns whether the read is answered, and was counted, although it was not shown all of it. */
  public boolean isServed() {
    return false;
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
   * Ends a read whose own connection showed nothing until the time was up. Where it returns, the
   * client's own error follows: there is nothing that could be served.
   *
   * @throws UnmetException unless such reads are answered all the same
   */
  public void expire(UnreachableException cause) {
    allowance.useUp();
    expired(begin(), cause);
  }

  /**
   * Ends a read whose snapshot is too old; where it returns, the read is answered all the same.
   *
   * @param shows whether the snapshot is known to show all that another floor demands
   * @throws StaleSnapshotException the given one
   */
  public void failSnapshot(StaleSnapshotException error, Predicate<Floor> shows) {
    throw error;
  }

  Wait begin() {
    Duration left = allowance.left(clock.nanoTime());
    return new Wait(Map.of(datastore, wanted), List.of(), List.of(), policies, clock, left);
  }

  /** Returns whether the read may be answered. */
  boolean judge(Wait wait, Observation observation) {
    long now = clock.nanoTime();
    wait.record(datastore, observation, now);
    if (!wait.isFinished()) {
      return false;
    }
    UnmetException error = UnmetException.of(wait.result(now));
    if (error == null) {
      prove(observation.server(), now);
    } else {
      unmet(error);
    }
    return true;
  }

  /** Returns whether the time is up, and with it the read is over. */
  boolean endsLate(Wait wait) {
    long now = clock.nanoTime();
    UnmetException error = now < wait.deadline() ? null : UnmetException.of(wait.result(now));
    if (error != null) {
      unmet(error);
    }
    return error != null;
  }

  /** Ends a read whose look failed although there was no time left. */
  void expired(Wait wait, UnreachableException cause) {
    long now = clock.nanoTime();
    if (now >= wait.deadline()) {
      wait.unreachable(datastore, Watcher.why(cause), now);
      UnmetException error = UnmetException.of(wait.result(now));
      if (error != null) {
        error.initCause(cause);
        unmet(error);
      }
    }
  }

  void prove(String server, long now) {
    Map<String, Long> shown = new HashMap<>(proved);
    shown.put(server, now);
    proved = Map.copyOf(shown);
  }

  private void unmet(UnmetException error) {
    Measured.unmet("read", error.result());
    fail(error);
  }

  /** Ends a read that is not shown what it must see. */
  void fail(UnmetException error) {
    throw error;
  }
}
