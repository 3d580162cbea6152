package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.request.Scope;
import io.antipode.runtime.Allowance;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.time.Duration;
import java.util.List;

/** Where a router of reads sends the next one: to the replica, or to the primary. */
final class Routing {
  /** For one honest poll although the time of the request is used up. */
  private static final Duration LEAST = Duration.ofMillis(50);

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
    if (Moved.cause(scope, datastore) != null) {
      return false;
    }
    if (!AutomaticDemand.concerns(scope.lineage(), datastore)) {
      return true;
    }
    if (shims.stream().noneMatch(shim -> shim.readsFrom() == ReadsFrom.REPLICA)) {
      return false;
    }
    Clock clock = shims.get(0).clock();
    Allowance allowance = scope.allowance();
    Duration left = allowance.left(clock.nanoTime());
    allowance.begin(clock.nanoTime());
    try {
      BarrierOptions options =
          BarrierOptions.timeout(left.compareTo(LEAST) > 0 ? left : LEAST)
              .withOnly(datastore)
              .returningUnmet();
      UnmetException unmet = UnmetException.of(Barriers.route(options));
      if (unmet != null) {
        Moved.move(scope, datastore, unmet.forPrimary());
      }
      return unmet == null;
    } finally {
      allowance.end(clock.nanoTime());
    }
  }
}
