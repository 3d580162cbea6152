package io.antipode.barrier;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How long a held read pauses between two polls, and anyone after a poll that failed. A pause of a
 * held read grows with the time waited, so that a poll comes at most 2 % of the wait, or 1 ms,
 * late. It is random, so that many processes do not poll in step. After failed polls it backs off.
 */
final class Pacer {
  /** The longest pause between two polls: polls this far apart are of one moment. */
  static final long MOST_NS = 50_000_000;

  private static final double SHARE = 0.02;
  private static final long LEAST_NS = 1_000_000;
  private static final double LEAST_PART = 0.75;
  private static final long BACKOFF_LEAST_NS = 10_000_000;
  private static final long BACKOFF_MOST_NS = 1_000_000_000;
  private static final int MOST_DOUBLINGS = 16;

  private int failures;

  /** Returns the pause to the next poll of a held read that has waited so long. */
  Duration pause(long waitedNs) {
    return random(Math.min(Math.max(LEAST_NS, (long) (waitedNs * SHARE)), MOST_NS));
  }

  /** Returns the pause after a poll that failed. */
  Duration backoff() {
    long longest = Math.min(BACKOFF_LEAST_NS << failures, BACKOFF_MOST_NS);
    failures = Math.min(failures + 1, MOST_DOUBLINGS);
    return random(longest);
  }

  /** A poll did not fail: the next one that does begins the count again. */
  void succeeded() {
    failures = 0;
  }

  private static Duration random(long longestNs) {
    double part = ThreadLocalRandom.current().nextDouble(LEAST_PART, 1);
    return Duration.ofNanos((long) (longestNs * part));
  }
}
