package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.lineage.Incomplete;
import io.antipode.runtime.Counts;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A barrier ended with dependencies that are not visible. */
public abstract sealed class UnmetException extends AntipodeException
    permits DependencyLostException,
        UnknownDatastoreException,
        VisibilityCheckException,
        IncompleteLineageException,
        BarrierTimeoutException {
  private static final long serialVersionUID = 1L;
  private static final Set<Status> LOST = Set.of(Status.LOST, Status.ABANDONED);
  private static final Set<Status> UNKNOWN = Set.of(Status.UNKNOWN_STORE);
  private static final Set<Status> UNDECIDED = Set.of(Status.UNKNOWN_LOG, Status.UNDECIDABLE);
  private static final Set<Status> LATE = Set.of(Status.NOT_YET, Status.UNREACHABLE);

  private final transient BarrierResult result;
  private boolean isForPrimary;

  UnmetException(String code, String message, BarrierResult result) {
    super(code, message);
    this.result = result;
  }

  final UnmetException forPrimary() {
    isForPrimary = true;
    return this;
  }

  /**
   * Returns whether it is of a read at a replica that may be made at the primary instead: {@code
   * on_stale} is {@code primary}, and no barrier was called that wants more.
   */
  public final boolean isForPrimary() {
    return isForPrimary;
  }

  /** Returns every outcome of the barrier, met and unmet. */
  public final BarrierResult result() {
    return result;
  }

  /**
   * Returns the outcomes for which it was thrown: with more time, others might have been met. None
   * of an incomplete lineage.
   */
  public final List<Outcome> decisive() {
    if (this instanceof DependencyLostException) {
      return result.unmet(LOST);
    } else if (this instanceof UnknownDatastoreException) {
      return result.unmet(UNKNOWN);
    } else if (this instanceof VisibilityCheckException) {
      return result.unmet(UNDECIDED);
    }
    return this instanceof BarrierTimeoutException ? result.unmet(LATE) : List.of();
  }

  /**
   * Returns the error that stands for a result, or null where it is ok. Of several that apply it is
   * the first: proof comes before ignorance, and both before impatience.
   */
  static @Nullable UnmetException of(BarrierResult result) {
    if (result.isOk()) {
      return null;
    }
    List<Outcome> unmet = result.unmet(LOST);
    if (!unmet.isEmpty()) {
      return new DependencyLostException(
          Outcome.describe(unmet)
              + ": waiting cannot bring it back: fail the request or read what is left on purpose",
          result);
    }
    unmet = result.unmet(UNKNOWN);
    if (!unmet.isEmpty()) {
      return new UnknownDatastoreException(
          Outcome.describe(unmet)
              + ": register its shim or instrument its client, or set only, exclude or onUnknown",
          result);
    }
    unmet = result.unmet(UNDECIDED);
    if (!unmet.isEmpty()) {
      return new VisibilityCheckException(
          Outcome.describe(unmet)
              + ": the server cannot relate it to its history: read the primary, or let onUnknown"
              + " report it",
          result);
    }
    if (!result.incomplete().isEmpty() && !result.isIncompleteOk()) {
      return new IncompleteLineageException(
          "the lineage is known to miss dependencies: "
              + described(result.incomplete())
              + ". Their visibility cannot be awaited: read the primary, or let onIncomplete"
              + " report them",
          result);
    }
    return new BarrierTimeoutException(
        "not visible after "
            + result.waited().toMillis()
            + " ms: "
            + Outcome.describe(result.unmet(LATE))
            + ": retry later, read the primary, or give a longer timeout",
        result);
  }

  /** Logs what a barrier or read did not get: each datastore and outcome once a minute at most. */
  final void log(String what) {
    result
        .unmet()
        .forEach(each -> log(what, each.dependency().datastore(), each.status().toString()));
    if (this instanceof IncompleteLineageException) {
      result.incomplete().forEach(mark -> log(what, mark.subject(), mark.reason()));
    }
  }

  private void log(String what, String datastore, String outcome) {
    Counts.logSeldom(
        "unmet_" + outcome,
        datastore,
        () ->
            "a %s did not see all that it depends on in '%s' (%s). It ended with %s: %s"
                .formatted(what, datastore, outcome, code(), getMessage()));
  }

  private static String described(Set<Incomplete> marks) {
    return marks.stream()
        .sorted(Comparator.comparing(Incomplete::subject).thenComparing(Incomplete::reason))
        .map(
            mark ->
                mark.subject().isEmpty() ? mark.reason() : mark.reason() + " of " + mark.subject())
        .collect(Collectors.joining(", "));
  }
}
