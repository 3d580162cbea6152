package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.Dependency;
import io.antipode.OnStale;
import io.antipode.StaleSnapshotException;
import io.antipode.runtime.Allowance;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What an automatic barrier demands of one read, on top of an explicit one's floor. Its time is the
 * request's. When that is used up, or no look can help, the read is answered all the same, and
 * counted, unless stale reads are to throw.
 */
final class AutomaticFloor extends Floor {
  /** A server that is far away is asked all the same, instead of giving its connection up. */
  private static final Duration LEAST_LOOK = Duration.ofMillis(500);

  private final Demand demand;
  private final @Nullable Floor below;
  private volatile boolean isServed;

  AutomaticFloor(Demand demand, Allowance allowance, Shim client, @Nullable Floor below) {
    super(
        client.datastore(),
        wanted(demand, below),
        allowance,
        demand.policies,
        proved(demand, below),
        client.clock());
    this.demand = demand;
    this.below = below;
  }

  private static Set<Dependency> wanted(Demand demand, @Nullable Floor below) {
    if (below == null) {
      return demand.wanted;
    }
    Set<Dependency> both = new HashSet<>(demand.wanted);
    both.addAll(below.wanted());
    return both;
  }

  private static Map<String, Long> proved(Demand demand, @Nullable Floor below) {
    if (below == null) {
      return demand.proved();
    }
    Map<String, Long> both = new HashMap<>(demand.proved());
    both.keySet().retainAll(below.proved().keySet());
    return both;
  }

  @Override
  Duration left() {
    Duration own = super.left();
    Duration held = below == null ? own : below.left();
    return own.compareTo(held) > 0 ? own : held;
  }

  @Override
  Duration leastLook() {
    return LEAST_LOOK;
  }

  /** Returns the explicit floor first, where there is one. */
  @Override
  public List<Floor> stages() {
    return below == null ? List.of(this) : List.of(below, this);
  }

  @Override
  public boolean isServed() {
    return isServed;
  }

  @Override
  public boolean accepts(Observation observation) {
    if (below != null && !below.accepts(observation)) {
      return false;
    }
    if (isServed) {
      return true;
    }
    Wait wait = begin();
    return judge(wait, observation) || endsLate(wait); // Another look would be for nothing.
  }

  @Override
  public void hold(Shim client, Look look) throws Exception {
    if (below != null) {
      below.hold(client, look);
    }
    if (!isServed) {
      super.hold(client, look);
    }
  }

  @Override
  public void expire(UnreachableException cause) {
    if (below != null) {
      below.expire(cause);
    }
    super.expire(cause);
  }

  @Override
  void expired(Wait wait, UnreachableException cause) {
    if (demand.settings().onStale() == OnStale.RAISE) {
      super.expired(wait, cause);
    }
  }

  @Override
  public void failSnapshot(StaleSnapshotException error, Predicate<Floor> shows) {
    if (below != null && !shows.test(below)) {
      throw error;
    }
    serve(error);
  }

  @Override
  void prove(String server, long now) {
    demand.prove(server, now);
  }

  @Override
  void fail(UnmetException error) {
    serve(error);
  }

  private void serve(AntipodeException error) {
    if (!isServed) {
      Automatic.serve(error, datastore(), demand.settings());
      isServed = true;
    }
  }
}
