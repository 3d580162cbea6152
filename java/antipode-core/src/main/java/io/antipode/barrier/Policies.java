package io.antipode.barrier;

import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What a barrier does about outcomes that are not plain success.
 *
 * @param returnsUnmet whether it returns a result that is not ok, instead of an error
 * @param onUnknown about unknown stores, unknown logs and the undecidable; null: fails, but for
 *     what the plan reports
 * @param onIncomplete about an incomplete lineage
 * @param horizon after which a write on an unknown log counts as aged
 * @param hour the Unix hour it is now
 */
record Policies(
    boolean returnsUnmet,
    @Nullable Policy onUnknown,
    Policy onIncomplete,
    Duration horizon,
    long hour) {
  /** After its expiry a promise may still be fulfilled for so long, by a slow clock. */
  static final Duration PROMISE_GRACE = Duration.ofHours(1);

  /** Returns those that are configured, for what begins now and throws what is unmet. */
  static Policies of(Settings settings, Clock clock) {
    return new Policies(
        false,
        settings.onUnknown(),
        settings.onIncomplete(),
        settings.horizon(),
        Math.floorDiv(clock.now().getEpochSecond(), 3_600L));
  }

  Policies raisingUnknown() {
    return new Policies(returnsUnmet, Policy.RAISE, onIncomplete, horizon, hour);
  }

  /** Returns an outcome as it counts under these policies. */
  Outcome settled(Outcome outcome) {
    if (outcome.status() == Status.UNKNOWN_LOG
        && outcome.dependency() instanceof WriteId write
        && write.writtenHour() > 0
        && write.writtenHour() * 3_600L < hour * 3_600 - horizon.toSeconds()) {
      return outcome.withStatus(Status.AGED, outcome.cause());
    }
    if (outcome.status().isUnknown() && onUnknown != null) {
      return outcome.withReported(onUnknown == Policy.REPORT);
    }
    return outcome;
  }

  /** Returns the outcome of a promise of which a server has no record. */
  Observation.Said judge(Promise promise, Instant now) {
    Duration late = Duration.between(Instant.ofEpochSecond(promise.expiresS()), now);
    if (late.compareTo(PROMISE_GRACE) <= 0) {
      return new Observation.Said(Status.NOT_YET, "");
    }
    Duration kept = horizon.compareTo(PROMISE_GRACE) > 0 ? horizon : PROMISE_GRACE;
    return late.compareTo(kept) > 0
        ? new Observation.Said(Status.AGED, "its record would be gone by now")
        : new Observation.Said(Status.ABANDONED, "it expired unfulfilled");
  }
}
