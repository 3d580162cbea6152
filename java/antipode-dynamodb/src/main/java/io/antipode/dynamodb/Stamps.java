package io.antipode.dynamodb;

import io.antipode.runtime.Time;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.function.LongSupplier;

/**
 * Stamps, which are the versions of items: a hybrid clock that never goes back, with a number of
 * its process. Thread-safe.
 */
final class Stamps {
  /** Those of this process. */
  static final Stamps OF_PROCESS = new Stamps(Stamps::now, new SecureRandom().nextInt(2_048));

  /** Bits of a stamp below its microseconds: the process, and whether it is of a deletion. */
  private static final int LOW_BITS = 12;

  private static final long PROCESS = (1L << LOW_BITS) - 2;

  /** How much later a stamp may be than the clock here for the next one to be after it. */
  private static final long MOST_AHEAD_US = 60_000_000;

  /** Clocks of writers differ by less: of two stamps further apart the larger is the later. */
  private static final long SKEW_US = 1_000_000;

  /**
   * A deletion that is younger may not have been seen where its item is not there: that which it
   * deleted may have to arrive yet. Items usually reach other regions within a second.
   */
  private static final long ARRIVES_US = 2_000_000;

  private final LongSupplier clock;
  private final int process;
  private long last;

  /**
   * Makes what stamps the writes of one process.
   *
   * @param clock Unix microseconds
   * @param process a number below 2,048
   */
  Stamps(LongSupplier clock, int process) {
    this.clock = clock;
    this.process = process;
  }

  /** Returns the Unix microsecond of now. */
  static long now() {
    Instant now = Time.now();
    return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
  }

  /**
   * Returns a stamp later than every one before, and than that of a cause. A cause that is more
   * than a minute ahead of the clock counts for nothing: one clock that is wrong is not to set all
   * others.
   */
  synchronized long next(boolean isDeletion, long after) {
    long now = clock.getAsLong();
    long seen = micros(after);
    long least = seen > now + MOST_AHEAD_US ? 0 : seen + 1;
    last = Math.max(Math.max(now, last + 1), least);
    return last << LOW_BITS | (long) process << 1 | (isDeletion ? 1 : 0);
  }

  /** Returns the Unix microsecond of a stamp, by its writer's clock. */
  static long micros(long stamp) {
    return stamp >> LOW_BITS;
  }

  /** Returns the Unix hour of a stamp. */
  static long hour(long stamp) {
    return micros(stamp) / 3_600_000_000L;
  }

  /** Returns whether a stamp is of a deletion: no item has it. */
  static boolean isDeletion(long stamp) {
    return (stamp & 1) == 1;
  }

  /** Returns whether what a write found at home has reached other regions by a microsecond. */
  static boolean isSettled(long stamp, long now) {
    return now - micros(stamp) >= ARRIVES_US;
  }

  /**
   * Returns whether a stamp of the same item is surely of a later write: one process stamps in
   * order, and two clocks agree to a second.
   */
  static boolean supersedes(long later, long earlier) {
    boolean isOneProcess = ((later ^ earlier) & PROCESS) == 0;
    return later > earlier && (isOneProcess || micros(later) - micros(earlier) > SKEW_US);
  }
}
