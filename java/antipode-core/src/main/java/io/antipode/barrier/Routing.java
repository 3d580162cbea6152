package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.runtime.Allowance;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Where a router of reads sends the next one: to the replica, or to the primary. */
final class Routing {
  /** For one honest poll although the time of the request is used up. */
  private static final Duration LEAST = Duration.ofMillis(50);

  /** For the question whether a long request may go back: primary and replica are asked. */
  private static final Duration BACK = Duration.ofMillis(200);

  private Routing() {}

  static ReadsFrom readsFrom(String datastore) {
    if (KillSwitch.isDisabled()) {
      return ReadsFrom.REPLICA;
    }
    List<Shim> shims = Shims.of(datastore);
    if (shims.stream().noneMatch(shim -> shim.readsFrom() == ReadsFrom.PRIMARY)) {
      throw new ConfigurationException(
          "no client of the primary of " + datastore + " is instrumented in this process");
    }
    Scope scope = Scope.currentOrNull();
    boolean isShown =
        scope == null
            || Settings.current().mode() != Mode.ENFORCE
            || isShown(scope, datastore, shims);
    if (!isShown) {
      Counts.count("reads_at_primary", datastore);
    }
    return isShown ? ReadsFrom.REPLICA : ReadsFrom.PRIMARY;
  }

  /** Returns whether the replica shows what a request depends on, or does so in time. */
  private static boolean isShown(Scope scope, String datastore, List<Shim> shims) {
    if (scope.uncommitted().contains(datastore)) {
      return false;
    }
    Clock clock = shims.get(0).clock();
    boolean moved = Moved.cause(scope, datastore) != null;
    if (moved && !Moved.isLong(scope, datastore, clock)) {
      return false;
    }
    if (!moved && !AutomaticDemand.concerns(scope.lineage(), datastore)) {
      return true;
    }
    if (shims.stream().noneMatch(shim -> shim.readsFrom() == ReadsFrom.REPLICA)) {
      return false;
    }
    UnmetException unmet = ask(scope, datastore, moved, clock);
    if (unmet == null && moved) {
      Moved.goBack(scope, datastore);
    } else if (unmet != null && !moved) {
      Moved.move(scope, datastore, unmet.forPrimary(), clock);
    }
    return unmet == null;
  }

  /**
   * Returns what the replica does not show of what a request must see, or null. One that was moved
   * must see what it may have read at the primary by now: the primary's position of this moment.
   */
  private static @Nullable UnmetException ask(
      Scope scope, String datastore, boolean moved, Clock clock) {
    Allowance allowance = scope.allowance();
    Duration left = allowance.left(clock.nanoTime());
    BarrierOptions options = BarrierOptions.timeout(left.compareTo(LEAST) > 0 ? left : LEAST);
    if (moved) {
      Lineage seen = scope.lineage().marked(new Incomplete(datastore, "unsampled"));
      options = BarrierOptions.timeout(BACK).withLineage(seen).withOnIncomplete(Policy.RAISE);
    }
    allowance.begin(clock.nanoTime());
    try {
      return UnmetException.of(Barriers.route(options.withOnly(datastore).returningUnmet()));
    } finally {
      allowance.end(clock.nanoTime());
    }
  }
}
