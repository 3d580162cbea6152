package io.antipode.barrier;

import io.antipode.ReadBarriers;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
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
 * A datastore that follows a script on a virtual clock. All times are nanoseconds of that clock.
 */
public final class FakeStore extends Shim {
  private static final long NEVER = Long.MAX_VALUE;

  /** What a store is. */
  public record Traits(
      ReadsFrom readsFrom,
      boolean isWaitable,
      boolean holdsReads,
      boolean canPoll,
      boolean isPinned,
      boolean pushes,
      boolean blocks,
      boolean pollsForPromises,
      boolean hasUniqueLogs,
      boolean canFence,
      Duration fenceTime) {
    static final Traits PLAIN =
        new Traits(
            ReadsFrom.PRIMARY,
            true,
            false,
            true,
            false,
            false,
            false,
            false,
            false,
            false,
            Duration.ZERO);
  }

  private record At<T>(long at, T value) {}

  private record Span(long from, long until) {}

  private final VirtualClock clock;
  private final Traits traits;
  private final Map<WriteId, List<At<Status>>> statuses = new HashMap<>();
  private final Map<Promise, List<At<Status>>> records = new HashMap<>();
  private final Map<String, List<At<Long>>> positions = new HashMap<>();
  private final List<At<String>> servers = new ArrayList<>(List.of(new At<>(0, "server-1")));
  private final List<At<String>> recordsServers = new ArrayList<>();
  private final List<Span> down = new ArrayList<>();
  private final List<At<Duration>> etas = new ArrayList<>();
  private final List<At<WriteId>> primary = new ArrayList<>();
  private final Fencer fencer;
  private @Nullable ReadBarriers barriers;
  private long brokenFrom = NEVER;
  private long frozenFrom = NEVER;
  private long primaryDownFrom = NEVER;
  private int looks;
  private int fences;
  private int open;

  /** A store without any log or write. */
  public FakeStore(String datastore, VirtualClock clock, Traits traits) {
    super(datastore, traits.readsFrom, clock);
    this.clock = clock;
    this.traits = traits;
    this.fencer = new SlowFencer();
  }

  /** Returns a store of which nothing but polls is asked. */
  public static FakeStore plain(String datastore, VirtualClock clock) {
    return new FakeStore(datastore, clock, Traits.PLAIN);
  }

  /** Has reads of its clients wait automatically, or not. */
  public void waitBy(ReadBarriers chosen) {
    barriers = chosen;
  }

  /** Returns how often it was polled, failed polls included. */
  public int polls() {
    return looks;
  }

  /** Returns how often its primary was asked for its position. */
  public int fences() {
    return fences;
  }

  /** Returns how many connections to it are open. */
  public int open() {
    return open;
  }

  /** Returns the floor that barriers left here in a scope; null for none. */
  public @Nullable Floor floor(Scope scope) {
    Demand left = Demands.in(scope, datastore(), false);
    return left == null ? null : new Floor(datastore(), List.of(left), clock);
  }

  // The script: from then on.

  /** The replica has a log up to a version. */
  public void advance(long at, String log, long version) {
    positions.computeIfAbsent(log, key -> new ArrayList<>()).add(new At<>(at, version));
    changed(at);
  }

  /** A write has a status, whatever the positions say. */
  public void status(long at, WriteId write, Status status) {
    statuses.computeIfAbsent(write, key -> new ArrayList<>()).add(new At<>(at, status));
    changed(at);
  }

  /** The record of a promise says this; not yet for none. */
  public void record(long at, Promise promise, Status status) {
    records.computeIfAbsent(promise, key -> new ArrayList<>()).add(new At<>(at, status));
    changed(at);
  }

  private void changed(long at) {
    if (traits.pushes) {
      clock.at(at, watcher().wake()::set);
    }
  }

  /** Polls reach this incarnation. */
  public void replace(long at, String server) {
    servers.add(new At<>(at, server));
  }

  /** Polls for promises reach this server, and no others do. */
  public void moveRecords(long at, String server) {
    recordsServers.add(new At<>(at, server));
  }

  /** Polls fail, until then, and are worth repeating. */
  public void takeDown(long from, @Nullable Long until) {
    down.add(new Span(from, until == null ? NEVER : until));
  }

  /** Polls fail for good. */
  public void breakDown(long from) {
    brokenFrom = from;
  }

  /** Its server answers no poll. */
  public void freeze(long from) {
    frozenFrom = from;
  }

  /** Polls say that what is missing may be visible after so long. */
  public void estimate(long at, Duration eta) {
    etas.add(new At<>(at, eta));
  }

  /** The primary's position in a log. */
  public void movePrimary(long at, WriteId position) {
    primary.add(new At<>(at, position));
  }

  /** The primary reports its position to nobody. */
  public void takePrimaryDown(long from) {
    primaryDownFrom = from;
  }

  boolean isFrozen() {
    return clock.nanoTime() >= frozenFrom;
  }

  // The shim.

  @Override
  public boolean isWaitable() {
    return traits.isWaitable;
  }

  @Override
  public boolean holdsReads() {
    return traits.holdsReads;
  }

  @Override
  public boolean canPoll() {
    return traits.canPoll;
  }

  @Override
  public @Nullable ReadBarriers barriers() {
    return barriers;
  }

  @Override
  public boolean canFence() {
    return traits.canFence;
  }

  @Override
  public boolean pollsForPromises() {
    return traits.pollsForPromises;
  }

  @Override
  public @Nullable WriteId logStart(String key) {
    return traits.hasUniqueLogs ? WriteId.of(datastore(), key, 1) : null;
  }

  @Override
  Fencer fencer() {
    return fencer;
  }

  @Override
  public Set<WriteId> fence(Duration timeout) {
    long now = clock.nanoTime();
    if (now >= primaryDownFrom || traits.fenceTime.compareTo(timeout) > 0) {
      throw new UnreachableException("the primary is scripted to be silent");
    }
    Map<String, WriteId> latest = new HashMap<>();
    for (At<WriteId> each : primary) {
      if (each.at <= now) {
        latest.put(each.value.key(), each.value);
      }
    }
    return new HashSet<>(latest.values());
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) {
    raiseIfDown();
    return new FakeEndpoint();
  }

  void raiseIfDown() {
    long now = clock.nanoTime();
    if (down.stream().anyMatch(span -> span.from <= now && now < span.until)) {
      looks++;
      throw new UnreachableException("scripted to be down");
    }
  }

  private boolean isLostSince(long opened) {
    long now = clock.nanoTime();
    return servers.stream().anyMatch(each -> opened < each.at && each.at <= now)
        || down.stream().anyMatch(span -> opened < span.from && span.from <= now);
  }

  /** Returns the incarnation that answers now. */
  String incarnation() {
    return latest(servers, clock.nanoTime(), "server-1");
  }

  Observation look(Collection<WriteId> writes, Collection<Promise> promises) {
    long now = clock.nanoTime();
    looks++;
    if (now >= brokenFrom) {
      throw new IllegalStateException("scripted to be broken");
    }
    String server = incarnation();
    Observation.Builder shown =
        Observation.of(promises.isEmpty() ? server : latest(recordsServers, now, server));
    writes.forEach(write -> shown.write(write, judge(write, now)));
    for (Promise promise : promises) {
      List<At<Status>> said = records.getOrDefault(promise, List.of());
      shown.promise(promise, latest(said, now, Status.NOT_YET));
    }
    for (At<Duration> eta : etas) {
      if (eta.at <= now) {
        shown.eta(eta.value);
      }
    }
    return shown.build();
  }

  private Status judge(WriteId write, long now) {
    for (At<Status> said : statuses.getOrDefault(write, List.of())) {
      if (said.at <= now) {
        return latest(statuses.getOrDefault(write, List.of()), now, said.value);
      }
    }
    List<At<Long>> moved = positions.getOrDefault(write.key(), List.of());
    boolean isKnown = moved.stream().anyMatch(each -> each.at <= now);
    return isKnown
            && write.opaqueVersion() == null
            && Long.compareUnsigned(latest(moved, now, 0L), write.version()) >= 0
        ? Status.VISIBLE
        : Status.NOT_YET;
  }

  private static <T> T latest(List<At<T>> timeline, long now, T first) {
    T found = first;
    for (At<T> each : timeline) {
      if (each.at <= now) {
        found = each.value;
      }
    }
    return found;
  }

  /** Asks a primary of a virtual clock: the answer comes later than the question. */
  private final class SlowFencer extends Fencer {
    private boolean isAsking;

    SlowFencer() {
      super(FakeStore.this, clock);
    }

    @Override
    public @Nullable Duration step() {
      if (!isAsking && begin()) {
        isAsking = true;
        fences++;
        return traits.fenceTime;
      }
      if (!isAsking) {
        return null;
      }
      isAsking = false;
      end();
      return Duration.ZERO;
    }
  }

  private final class FakeEndpoint implements Endpoint {
    private final long opened = clock.nanoTime();
    private boolean isOpen = true;

    FakeEndpoint() {
      open++;
    }

    @Override
    public boolean isPinned() {
      return traits.isPinned && isOpen && !isLostSince(opened);
    }

    @Override
    public boolean isBlocking() {
      return traits.blocks;
    }

    @Override
    public Observation observe(Collection<WriteId> writes, Duration timeout) {
      check();
      return look(writes, List.of());
    }

    @Override
    public Observation promised(Collection<Promise> promises, Duration timeout) {
      check();
      return look(List.of(), promises);
    }

    private void check() {
      if (!isOpen) {
        throw new UnreachableException("closed");
      }
      raiseIfDown();
      if (traits.isPinned && !isPinned()) {
        looks++;
        throw new UnreachableException("scripted to be replaced");
      }
    }

    @Override
    public void close() {
      if (isOpen) {
        open--;
        isOpen = false;
      }
    }
  }
}
