package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Observers;
import io.antipode.request.OpenWrites;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What the next read of one datastore must see, on whatever connection it is made.
 *
 * <p>A list of demands: of barriers that were called first, which have their time and their errors
 * before the automatic one of the read itself has its own. One poll shows all of them, or the read
 * is not answered.
 *
 * <p>An instrumented connection asks its server, in the read's own round trip where it can, and
 * answers the read only where {@link #accepts} says so; otherwise it holds the read back with
 * {@link #hold}, or with a {@link HeldRead}. Where it knows without a poll that all is shown, it
 * calls {@link #pass}. Time is spent only while holding.
 */
public final class Floor {
  /** Polls once on the connection that will read. */
  public interface Look {
    /**
     * Returns what it shows.
     *
     * @param timeout the longest that it may last
     */
    Observation observe(Duration timeout) throws Exception;
  }

  private final String datastore;
  private final List<Demand> demands;

  /** What no poll can show the read; null for nothing. */
  private final @Nullable UnmetException flaw;

  /** Whether a read that was shown all the rest throws that, instead of being answered. */
  private final boolean isThrown;

  /** Counts it once it is answered; null: it is counted where it is let go. */
  private final @Nullable StaleRead stale;

  private final Clock clock;
  private final Set<Dependency> wanted = new HashSet<>();
  private volatile boolean isServed;
  private final AtomicBoolean isCounted = new AtomicBoolean();

  Floor(String datastore, List<Demand> demands, Clock clock) {
    this(datastore, demands, null, false, null, clock);
  }

  private Floor(
      String datastore,
      List<Demand> demands,
      @Nullable UnmetException flaw,
      boolean isThrown,
      @Nullable StaleRead stale,
      Clock clock) {
    this.datastore = datastore;
    this.demands = List.copyOf(demands);
    this.flaw = flaw;
    this.isThrown = isThrown;
    this.stale = stale;
    this.clock = clock;
    demands.forEach(each -> wanted.addAll(each.wanted()));
  }

  /**
   * Returns what the next read by a client must see: what barriers left to it and, where reads wait
   * automatically, what its request depends on there. Null where nothing: the read goes its way.
   *
   * <p>Asked once for each read, in the application's thread, just before it is sent. The read is
   * over when that thread goes on; where it may not be, {@link #currentAhead} asks. A read that is
   * let go although it may be stale is counted here, or where it is let go, though its server may
   * refuse it: a client that knows when it is answered gives a {@link StaleRead}.
   *
   * @throws UnmetException if that is known without a poll, and stale reads are to throw
   */
  public static @Nullable Floor current(Shim client) {
    return next(client, true, null, null);
  }

  /**
   * As {@link #current(Shim)}, of a read that may be made through a connection or session that has
   * a transaction.
   *
   * @param who that one, as {@link Recording#recordUncommitted} has it; null for none
   * @param stale counts it once it is answered
   */
  public static @Nullable Floor current(Shim client, @Nullable Object who, StaleRead stale) {
    return next(client, true, who, stale);
  }

  /** As {@link #current(Shim)}, of a read that may go on when this thread does. */
  public static @Nullable Floor currentAhead(Shim client, StaleRead stale) {
    return next(client, false, null, stale);
  }

  private static @Nullable Floor next(
      Shim client, boolean isOwn, @Nullable Object who, @Nullable StaleRead stale) {
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      if (!Scope.isStoppedInCurrent()) {
        Recording.unscoped("read", client.datastore(), null);
      }
      return null;
    }
    if (Observers.dryRun() instanceof ReadObserver observer) {
      boolean isAutomatic = client.holdsReads() && Automatic.isChosen(client);
      observer.reads(scope, client, isAutomatic, isOwn);
    }
    tellOfUnseen(client.datastore(), scope, who);
    return floor(client, scope, true, stale);
  }

  /** Reports a read that the writes of a transaction of another connection are hidden from. */
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
    return again(client, null);
  }

  /** As {@link #currentAgain(Shim)}, of a read that is counted once it is answered. */
  public static @Nullable Floor currentAgain(Shim client, StaleRead stale) {
    return again(client, stale);
  }

  private static @Nullable Floor again(Shim client, @Nullable StaleRead stale) {
    Scope scope = Scope.currentOrNull();
    return scope == null ? null : floor(client, scope, false, stale);
  }

  /** Returns whether each demand was shown by some server. */
  boolean isProved() {
    return demands.stream().allMatch(Demand::isProved);
  }

  /**
   * Waits until a watcher sees what no server has shown yet; null for none, and for no time.
   *
   * @param longest after which it waits no more
   */
  void await(@Nullable Watcher watcher, Duration longest) throws InterruptedException {
    if (watcher == null) {
      return;
    }
    long startedNs = clock.nanoTime();
    for (Demand each : demands) {
      if (!each.isProved()) {
        Hint hint = new Hint(watcher, each.wanted());
        Duration most = longest.minusNanos(clock.nanoTime() - startedNs);
        try {
          spend(each, left -> hint.await(left.compareTo(most) < 0 ? left : most));
        } finally {
          hint.cancel();
        }
      }
    }
  }

  /** Pauses this thread, in the time of the first demand that no server has shown. */
  void pause(Duration pause) throws InterruptedException {
    Demand demand =
        demands.stream().filter(each -> !each.isProved()).findFirst().orElse(demands.get(0));
    spend(demand, left -> TimeUnit.NANOSECONDS.sleep(Math.min(pause.toNanos(), left.toNanos())));
  }

  private interface Waiting {
    void during(Duration left) throws InterruptedException;
  }

  private void spend(Demand demand, Waiting waiting) throws InterruptedException {
    long now = clock.nanoTime();
    Duration left = demand.allowance().left(now);
    demand.allowance().begin(now);
    try {
      waiting.during(left);
    } finally {
      demand.allowance().end(clock.nanoTime());
    }
  }

  /**
   * Returns whether nothing is missing on a connection that waiting may bring there; what its
   * server shows is remembered.
   */
  boolean mayKeep(Observation shown) {
    for (Demand each : demands) {
      if (each.wanted().stream().allMatch(one -> shown.status(one) == Status.VISIBLE)) {
        each.prove(shown.server(), clock.nanoTime());
      }
    }
    return wanted.stream().noneMatch(each -> shown.status(each).isPending());
  }

  private static @Nullable Floor floor(
      Shim client, Scope scope, boolean reads, @Nullable StaleRead stale) {
    Demand called = Demands.in(scope, client.datastore(), false);
    List<Demand> demands = new ArrayList<>(2);
    if (called != null) {
      demands.add(called);
    }
    AutomaticDemand automatic =
        Automatic.applies(client) ? AutomaticDemand.of(scope, client, called) : null;
    boolean isThrown = automatic != null && automatic.isThrown() && automatic.isFlawed();
    if (automatic != null && !automatic.wanted().isEmpty() && !(called != null && isThrown)) {
      demands.add(automatic);
    }
    UnmetException flaw = reads && automatic != null ? flaw(automatic) : null;
    if (flaw != null && isThrown && called == null) {
      flaw.log("read");
      throw flaw;
    }
    if (!demands.isEmpty()) {
      return new Floor(client.datastore(), demands, flaw, isThrown, stale, client.clock());
    }
    if (flaw != null) {
      serve(client.datastore(), flaw, stale);
    }
    return null;
  }

  private static void serve(String datastore, AntipodeException error, @Nullable StaleRead stale) {
    if (stale == null) {
      tellOfStale(datastore, error);
    } else {
      stale.serve(datastore, error);
    }
  }

  /** Returns what no poll can show a read; null for nothing. */
  private static @Nullable UnmetException flaw(AutomaticDemand automatic) {
    Call.countUnknownStores(automatic.unknown());
    return automatic.flaw();
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

  /** Returns what must be fulfilled; empty where no shim of the datastore asks for promises. */
  public List<Promise> promises() {
    return wanted.stream().filter(Promise.class::isInstance).map(Promise.class::cast).toList();
  }

  /**
   * Returns whether a server showed all of it before. A pinned connection to it need not ask again.
   */
  public boolean isProvedOn(String server) {
    return demands.stream().allMatch(each -> each.proved(server) != null);
  }

  /** Returns whether a server showed all of it in the last so many. */
  public boolean isProvedOn(String server, Duration within) {
    long since = clock.nanoTime() - within.toNanos();
    for (Demand each : demands) {
      Long shown = each.proved(server);
      if (shown == null || shown <= since) {
        return false;
      }
    }
    return true;
  }

  /** Returns whether another floor demands all of it, too. */
  public boolean isWithin(@Nullable Floor other) {
    return other != null && other.demands.containsAll(demands);
  }

  /** Returns for how long the read may still be held back. */
  Duration left() {
    long now = clock.nanoTime();
    return longest(each -> each.allowance().left(now));
  }

  private Duration longest(Function<Demand, Duration> time) {
    return demands.stream().map(time).max(Comparator.naturalOrder()).orElse(Duration.ZERO);
  }

  /** Returns how long a poll may last: what is left, but enough for one honest try. */
  public Duration pollTimeout() {
    Duration left = left();
    Duration least = longest(Demand::leastLook);
    return left.compareTo(least) > 0 ? left : least;
  }

  /**
   * Returns how long the server may block during a poll: what is left, but no longer than is given.
   */
  public Duration blockTimeout(Duration longest) {
    Duration left = left();
    if (left.compareTo(Demand.LEAST_LOOK) <= 0) {
      return Duration.ZERO;
    }
    return left.compareTo(longest) < 0 ? left : longest;
  }

  /** Returns whether the read may be answered although it was not shown all of it. */
  public boolean isServed() {
    return isServed;
  }

  /** Returns whether the read counts as stale: served, or of an incomplete lineage. */
  public boolean isCounted() {
    return isCounted.get();
  }

  /** Returns whether no demand is left that a poll may show: the read need not be held. */
  public boolean isOver() {
    return isServed && demands.stream().allMatch(Demand::isAutomatic);
  }

  List<Demand> demands() {
    return demands;
  }

  /**
   * Returns whether a read made at or after this poll may be answered.
   *
   * @throws UnmetException if waiting longer cannot help
   */
  public boolean accepts(Observation observation) {
    for (Demand each : demands) {
      if (!judge(each, begin(each), observation)) {
        return false;
      }
    }
    pass();
    return true;
  }

  /**
   * Says that the read is answered: it is known to be shown all of it that a poll can show.
   *
   * @throws UnmetException if it is not: it depends on what no poll can show
   */
  public void pass() {
    if (flaw == null) {
      return;
    }
    if (isThrown) {
      flaw.log("read");
      throw flaw;
    }
    count(flaw);
  }

  /** Begins to hold a read back, by a client that pauses itself. */
  public HeldRead hold(Shim client) {
    return hold(client, (Places) null);
  }

  /**
   * As {@link #hold(Shim)}, of a read that keeps a connection of a pool while it waits.
   *
   * @param places of that pool; null for none that is known
   */
  public HeldRead hold(Shim client, @Nullable Places places) {
    Objects.requireNonNull(client, "client");
    return new HeldRead(this, Shims.sharedWatcher(client), places);
  }

  /**
   * Holds a read back until a poll shows the floor; then read on that connection.
   *
   * @param client whose datastore's watcher polls for all held reads, which themselves poll rarely
   *     then
   * @throws UnmetException if the time is up, or waiting longer cannot help
   * @throws Exception what the poll throws, where there was time left
   */
  public void hold(Shim client, Look look) throws Exception {
    hold(client, null, look);
  }

  /**
   * As {@link #hold(Shim, Look)}, of a read that keeps a connection of a pool while it waits. Where
   * waiting reads keep as many as they may, it ends as if its time were up.
   *
   * @param places of that pool; null for none that is known
   */
  public void hold(Shim client, @Nullable Places places, Look look) throws Exception {
    if (isOver()) {
      return;
    }
    try (HeldRead read = hold(client, places)) {
      try {
        for (Duration pause = read.take(look.observe(read.pollTimeout()));
            pause != null;
            pause = read.take(look.observe(read.pollTimeout()))) {
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
    for (Demand each : demands) {
      each.allowance().useUp();
      failLate(each, begin(each), cause);
    }
  }

  /**
   * Ends a read whose snapshot is too old; where it returns, the read is answered all the same, and
   * counted: no barrier that was called is against it, nor {@code on_stale=primary}, for what reads
   * from an open snapshot cannot go elsewhere.
   *
   * @param shows whether the snapshot is known to show all that another floor demands
   * @throws StaleSnapshotException the given one
   */
  public void failSnapshot(StaleSnapshotException error, Predicate<Floor> shows) {
    if (demands.stream().anyMatch(each -> each.isAutomatic() && each.isThrown())) {
      throw error;
    }
    List<Demand> called = demands.stream().filter(each -> !each.isAutomatic()).toList();
    boolean isCalled = called.size() == demands.size();
    if (isCalled || (!called.isEmpty() && !shows.test(new Floor(datastore, called, clock)))) {
      throw error;
    }
    serve(error);
  }

  /** Ends a read for which its pool has no connection to spare, as if its time were up. */
  void turnAway(Observation observation) {
    String crowded =
        "reads that wait hold half of the pool of '"
            + datastore
            + "', so that this one may not: wait before the connection is taken, or give the pool"
            + " more connections";
    Counts.logSeldom("pool_half_held", datastore, () -> crowded);
    try {
      for (Demand each : demands) {
        boolean unused = judge(each, begin(each, Duration.ZERO), observation);
      }
    } catch (UnmetException error) {
      error.initCause(new UnreachableException(crowded));
      throw error;
    }
    pass();
  }

  /** Begins to wait for a demand. */
  Wait begin(Demand demand) {
    return begin(demand, demand.allowance().left(clock.nanoTime()));
  }

  private Wait begin(Demand demand, Duration left) {
    Map<String, Set<Dependency>> wanted = Map.of(datastore, demand.wanted());
    return new Wait(wanted, List.of(), List.of(), demand.policies(), clock, left);
  }

  /** Returns whether a demand lets the read go; one whose time is up does, or throws. */
  boolean judge(Demand demand, Wait wait, Observation observation) {
    if (isServed && demand.isAutomatic()) {
      return true;
    }
    long now = clock.nanoTime();
    wait.record(datastore, observation, now);
    if (!wait.isFinished() && now < wait.deadline()) {
      return false;
    }
    UnmetException error = UnmetException.of(wait.result(now));
    if (error == null) {
      demand.prove(observation.server(), now);
    } else {
      fail(demand, error);
    }
    return true;
  }

  /** Ends a read whose poll failed, if the time of a demand is up and such reads throw. */
  void failLate(Demand demand, Wait wait, UnreachableException cause) {
    long now = clock.nanoTime();
    if (demand.isThrown() && now >= wait.deadline()) {
      wait.unreachable(datastore, Watcher.why(cause), now);
      UnmetException error = UnmetException.of(wait.result(now));
      if (error != null) {
        error.initCause(cause);
        fail(demand, error);
      }
    }
  }

  /** Ends a read that is not shown what it must see. */
  private void fail(Demand demand, UnmetException error) {
    Measured.unmet("read", error.result());
    if (demand.isThrown()) {
      if (!demand.moves()) {
        error.log("read");
      }
      throw demand.marked(error);
    }
    serve(error);
  }

  /** Lets the read go although it is not shown what an automatic demand wants. */
  private void serve(AntipodeException error) {
    isServed = true;
    count(error);
  }

  private void count(AntipodeException error) {
    if (isCounted.compareAndSet(false, true)) {
      serve(datastore, error, stale);
    }
  }

  /** Says that a read is answered although it is stale. */
  static void tellOfStale(String datastore, AntipodeException error) {
    Counts.count("served_stale", datastore);
    Span.current()
        .addEvent(
            "antipode.served_stale",
            Attributes.builder()
                .put("antipode.datastore", datastore)
                .put("antipode.code", error.code())
                .build());
    Counts.logSeldom(
        "served_stale",
        datastore,
        () ->
            "a read of "
                + datastore
                + " was answered although its request depends on more: "
                + error.getMessage());
  }
}
