package io.antipode.barrier;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Time as barriers see it, and what runs on it. Tests have one on which time only passes if asked
 * to.
 */
public interface Clock {
  /** Returns the machine's. */
  static Clock system() {
    return SystemClock.INSTANCE;
  }

  /** Returns nanoseconds that never go back. */
  long nanoTime();

  /** Returns what the calendar says. */
  Instant now();

  /**
   * Runs a stepper in the background until it is done; returns its thread, or null where it has
   * none.
   *
   * @throws NoThreadException if the system starts none now
   */
  @Nullable Thread spawn(Stepper stepper);

  /** Runs a short task later; what is returned cancels it. */
  Runnable schedule(Duration delay, Runnable task);

  /** Runs what may take long, such as a callback, soon. */
  void execute(Runnable task);
}
