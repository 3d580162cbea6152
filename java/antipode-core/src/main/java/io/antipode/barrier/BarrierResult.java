package io.antipode.barrier;

import io.antipode.lineage.Incomplete;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How a barrier or a check ended.
 *
 * @param outcomes one for each dependency, by datastore, key and version
 * @param waited from the call to its end
 * @param eta after which the unmet dependencies may be visible; null where no store can estimate it
 * @param incomplete what the lineage is known to miss, within the datastores that were asked for
 * @param isIncompleteOk whether the policy lets an incomplete lineage pass
 */
public record BarrierResult(
    List<Outcome> outcomes,
    Duration waited,
    @Nullable Duration eta,
    Set<Incomplete> incomplete,
    boolean isIncompleteOk) {
  /** Makes copies. */
  public BarrierResult {
    outcomes = List.copyOf(outcomes);
    incomplete = Set.copyOf(incomplete);
  }

  /** Returns whether everything that was asked for is visible where the caller will read. */
  public boolean isOk() {
    return outcomes.stream().allMatch(Outcome::isMet) && (isIncompleteOk || incomplete.isEmpty());
  }

  /** Returns the outcomes that keep the barrier from succeeding. */
  public List<Outcome> unmet() {
    return outcomes.stream().filter(outcome -> !outcome.isMet()).toList();
  }

  /** Returns the error that stands for this result, which is not thrown; null where it is ok. */
  public @Nullable UnmetException error() {
    return UnmetException.of(this);
  }

  List<Outcome> unmet(Collection<Status> statuses) {
    return unmet().stream().filter(outcome -> statuses.contains(outcome.status())).toList();
  }
}
