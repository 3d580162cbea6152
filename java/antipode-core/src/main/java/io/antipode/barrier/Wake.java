package io.antipode.barrier;

import java.time.Duration;

/** What ends a pause early. Thread-safe. */
public final class Wake {
  private boolean isSet;

  Wake() {}

  /** Ends the pause, or the next one. */
  public synchronized void set() {
    isSet = true;
    notifyAll();
  }

  synchronized void clear() {
    isSet = false;
  }

  /** Returns whether a wake-up is pending. */
  public synchronized boolean isSet() {
    return isSet;
  }

  /** Pauses until the time is over or until woken; returns whether it was woken. */
  public synchronized boolean await(Duration timeout) throws InterruptedException {
    long until = System.nanoTime() + timeout.toNanos();
    for (long left = timeout.toNanos(); !isSet && left > 0; left = until - System.nanoTime()) {
      wait(left / 1_000_000, (int) (left % 1_000_000));
    }
    return isSet;
  }
}
