package io.antipode.spring;

import io.antipode.Policy;
import io.antipode.Settings;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * The settings of one application context: those of the process, with the properties of the
 * context, until it is closed. Of several open contexts those of the last one are in force.
 */
final class ContextSettings {
  /** Those that are open, in the order in which they were opened; also the lock. */
  private static final List<ContextSettings> OPEN = new ArrayList<>();

  private final Settings before;
  private final Settings applied;

  private ContextSettings(Settings before, Settings applied) {
    this.before = before;
    this.applied = applied;
  }

  /**
   * Puts settings in force. What writes outside of a scope while the context starts, such as
   * migrations, is counted and logged, also where {@code on_unscoped} is {@code raise}.
   *
   * @param change from the settings of the process to those of the context
   */
  static ContextSettings open(UnaryOperator<Settings> change) {
    synchronized (OPEN) {
      Settings before = OPEN.isEmpty() ? Settings.current() : OPEN.get(0).before;
      ContextSettings opened = new ContextSettings(before, change.apply(before));
      OPEN.add(opened);
      boolean raises = opened.applied.onUnscoped() == Policy.RAISE;
      inForce(raises ? opened.applied.withOnUnscoped(null) : opened.applied);
      return opened;
    }
  }

  /** The context has started. */
  void started() {
    synchronized (OPEN) {
      if (isLast() && applied.onUnscoped() == Policy.RAISE) {
        Settings unused = Settings.configure(held -> held.withOnUnscoped(Policy.RAISE));
      }
    }
  }

  /** The context is closed: what was in force before it is again. */
  void close() {
    synchronized (OPEN) {
      boolean wasLast = isLast();
      OPEN.remove(this);
      if (wasLast) {
        inForce(OPEN.isEmpty() ? before : OPEN.get(OPEN.size() - 1).applied);
      }
    }
  }

  private boolean isLast() {
    return !OPEN.isEmpty() && OPEN.get(OPEN.size() - 1) == this;
  }

  private static void inForce(Settings settings) {
    Settings unused = Settings.configure(held -> settings);
  }
}
