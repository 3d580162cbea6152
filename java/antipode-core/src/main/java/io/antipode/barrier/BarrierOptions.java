package io.antipode.barrier;

import io.antipode.Mode;
import io.antipode.Policy;
import io.antipode.lineage.Lineage;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What a barrier waits for, for how long, and what it does about what is not plain success. A value
 * that never changes: {@code with} methods return another one.
 */
public final class BarrierOptions {
  private final Draft values;

  private BarrierOptions(Draft values) {
    this.values = values;
  }

  /**
   * Returns options with a deadline, and otherwise with what is configured.
   *
   * @param timeout positive; the configured maximum bounds it
   */
  public static BarrierOptions timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException(
          "a timeout is positive, not " + timeout + ": to check once, use check()");
    }
    return new BarrierOptions(new Draft(timeout));
  }

  /**
   * Returns options of a check: it lasts a second at most, and throws nothing for what is unmet.
   */
  public static BarrierOptions check() {
    return timeout(Watcher.LOOK).returningUnmet();
  }

  /** Returns these options for a lineage, instead of that of the scope. */
  public BarrierOptions withLineage(Lineage lineage) {
    Objects.requireNonNull(lineage, "lineage");
    return with(
        draft -> {
          draft.lineage = lineage;
          draft.text = null;
        });
  }

  /** Returns these options for the lineage of a text, instead of that of the scope. */
  public BarrierOptions withLineage(String text) {
    Objects.requireNonNull(text, "text");
    return with(
        draft -> {
          draft.lineage = null;
          draft.text = text;
        });
  }

  /** Returns these options for some datastores alone; others are reported as excluded. */
  public BarrierOptions withOnly(String... datastores) {
    return withOnly(Arrays.asList(datastores));
  }

  /** Returns these options for some datastores alone; others are reported as excluded. */
  public BarrierOptions withOnly(Collection<String> datastores) {
    Set<String> names = Set.copyOf(datastores);
    return with(draft -> draft.only = names);
  }

  /** Returns these options without some datastores, whatever else names them. */
  public BarrierOptions withExclude(String... datastores) {
    return withExclude(Arrays.asList(datastores));
  }

  /** Returns these options without some datastores, whatever else names them. */
  public BarrierOptions withExclude(Collection<String> datastores) {
    Set<String> names = Set.copyOf(datastores);
    return with(draft -> draft.exclude = names);
  }

  /**
   * Returns these options for a barrier that waits for nothing itself: each instrumented connection
   * satisfies what it leaves in the scope just before its next read.
   */
  public BarrierOptions atRead() {
    return with(draft -> draft.atRead = true);
  }

  /** Returns these options for a barrier that returns what is unmet, and throws nothing for it. */
  public BarrierOptions returningUnmet() {
    return with(draft -> draft.returnsUnmet = true);
  }

  /** Returns these options for a check that judges by what is known already. */
  public BarrierOptions withoutRefresh() {
    return with(draft -> draft.refreshes = false);
  }

  /** Returns these options with what to do about unknown stores and logs, and the undecidable. */
  public BarrierOptions withOnUnknown(Policy policy) {
    Objects.requireNonNull(policy, "policy");
    return with(draft -> draft.onUnknown = policy);
  }

  /** Returns these options with what to do about an incomplete lineage. */
  public BarrierOptions withOnIncomplete(Policy policy) {
    Objects.requireNonNull(policy, "policy");
    return with(draft -> draft.onIncomplete = policy);
  }

  /** Returns these options in another mode. */
  public BarrierOptions withMode(Mode mode) {
    Objects.requireNonNull(mode, "mode");
    return with(draft -> draft.mode = mode);
  }

  /** Returns these options on another clock, for tests. */
  public BarrierOptions withClock(Clock clock) {
    Objects.requireNonNull(clock, "clock");
    return with(draft -> draft.clock = clock);
  }

  private BarrierOptions with(Consumer<Draft> change) {
    Draft draft = new Draft(values);
    change.accept(draft);
    return new BarrierOptions(draft);
  }

  Duration timeout() {
    return values.timeout;
  }

  @Nullable Lineage lineage() {
    return values.lineage;
  }

  @Nullable String text() {
    return values.text;
  }

  boolean isOnlyGiven() {
    return values.only != null;
  }

  @Nullable Set<String> only() {
    return values.only;
  }

  Set<String> exclude() {
    return values.exclude;
  }

  /** Returns whether a subject counts; the empty one always does. */
  boolean asks(String subject) {
    return (subject.isEmpty() || values.only == null || values.only.contains(subject))
        && !values.exclude.contains(subject);
  }

  boolean isAtRead() {
    return values.atRead;
  }

  boolean returnsUnmet() {
    return values.returnsUnmet;
  }

  boolean refreshes() {
    return values.refreshes;
  }

  @Nullable Policy onUnknown() {
    return values.onUnknown;
  }

  @Nullable Policy onIncomplete() {
    return values.onIncomplete;
  }

  @Nullable Mode mode() {
    return values.mode;
  }

  Clock clock() {
    return values.clock;
  }

  /** The values, while they are put together. */
  private static final class Draft {
    private final Duration timeout;
    private @Nullable Lineage lineage;
    private @Nullable String text;
    private @Nullable Set<String> only;
    private Set<String> exclude = Set.of();
    private boolean atRead;
    private boolean returnsUnmet;
    private boolean refreshes = true;
    private @Nullable Policy onUnknown;
    private @Nullable Policy onIncomplete;
    private @Nullable Mode mode;
    private Clock clock = Clock.system();

    Draft(Duration timeout) {
      this.timeout = timeout;
    }

    Draft(Draft other) {
      timeout = other.timeout;
      lineage = other.lineage;
      text = other.text;
      only = other.only;
      exclude = other.exclude;
      atRead = other.atRead;
      returnsUnmet = other.returnsUnmet;
      refreshes = other.refreshes;
      onUnknown = other.onUnknown;
      onIncomplete = other.onIncomplete;
      mode = other.mode;
      clock = other.clock;
    }
  }
}
