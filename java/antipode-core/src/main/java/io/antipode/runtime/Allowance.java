package io.antipode.runtime;

import java.time.Duration;

/**
 * Time that may be waited in all. Whoever waits at the same time spends it together. All {@code
 * now} are nanoseconds of one clock. Thread-safe.
 */
public final class Allowance {
  private long left;
  private int waiting;
  private long since;

  /** Allows so much. */
  public Allowance(Duration time) {
    this.left = time.toNanos();
  }

  /** Returns what is left. */
  public synchronized Duration left(long now) {
    return Duration.ofNanos(Math.max(waiting == 0 ? left : left - (now - since), 0));
  }

  /** Somebody begins to wait. */
  public synchronized void begin(long now) {
    if (waiting == 0) {
      since = now;
    }
    waiting++;
  }

  /** Somebody who began waits no longer. */
  public synchronized void end(long now) {
    left = Math.max(left - (now - since), 0);
    since = now;
    waiting--;
  }

  /** Somebody waited for all of it, elsewhere. */
  public synchronized void useUp() {
    left = 0;
  }
}
