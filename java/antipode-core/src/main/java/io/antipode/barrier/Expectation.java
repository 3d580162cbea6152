package io.antipode.barrier;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.NavigableSet;

/**
 * What the waits at one endpoint lasted, and when to poll next therefore: at once, then at the
 * longest pauses until shortly before the first wait is expected to end, then close by. It decides
 * when to ask, never what is true: what ends sooner than expected, or later, is seen after 50 ms at
 * most. Durations and times are in microseconds, times of any clock.
 */
final class Expectation {
  private static final long MOST_US = 50_000;
  private static final long LEAST_US = 1_000;

  /** Waits that are remembered. */
  private static final int MOST_WAITS = 16;

  /** The widest gap between two polls near the expected end. */
  private static final long MOST_CLOSE_US = 2_000;

  private final Deque<Long> waits = new ArrayDeque<>(MOST_WAITS);
  private long[] expected = {};
  private long least;

  /**
   * Takes in that a wait ended, between the last poll that was in vain and the one that was not. It
   * ended in the middle, as far as is known. After a longer pause it may have ended much earlier:
   * the next wait is polled earlier, too. A wait that ended before all that was expected says that
   * the lag has changed: nothing is known any more.
   */
  void learn(long afterUs, long untilUs) {
    long width = untilUs - afterUs;
    long close = close(untilUs);
    if (!waits.isEmpty() && untilUs < least && width > wide(untilUs)) {
      waits.clear();
      expected = new long[0];
      return;
    }
    if (waits.size() == MOST_WAITS) {
      waits.remove();
    }
    waits.add(untilUs - (width <= 4 * close ? width / 2 : Math.max(close, width / 4)));
    long[] sorted = waits.stream().mapToLong(Long::longValue).sorted().toArray();
    least = sorted[0];
    int paid = (int) Math.min(sorted[sorted.length / 2] / MOST_US, 6); // Polls of longest pauses.
    expected = Arrays.copyOfRange(sorted, sorted.length * paid / 12, sorted.length);
  }

  /**
   * Returns when to poll next.
   *
   * @param now the time, when all that wait were polled in vain
   * @param joined when each of them began to wait; not empty
   */
  long next(long now, NavigableSet<Long> joined) {
    if (expected.length == 0) {
      return now + Math.min(Math.max(LEAST_US, (now - joined.last()) / 10), MOST_US);
    }
    long longest = expected[expected.length - 1];
    long next = Math.min(expected(now, joined), now + MOST_US);
    Long overdue = joined.floor(now - longest);
    if (overdue != null) { // The youngest that has waited longer than all before it.
      long waited = now - overdue;
      next = Math.min(next, now + Math.max(close(waited), (waited - longest) / 2));
    }
    return Math.max(next, now + LEAST_US);
  }

  /** Returns when the next wait is expected to end, or a part of the way there. */
  private long expected(long now, NavigableSet<Long> joined) {
    long first = Long.MAX_VALUE;
    long wait = 0;
    for (long each : expected) {
      Long later = joined.higher(now - each);
      if (later != null && later + each < first) {
        first = later + each;
        wait = each;
      }
    }
    if (wait == 0) {
      return now + MOST_US;
    }
    long last = first;
    long until = first + close(wait);
    for (long each : expected) { // One poll for all that are expected close to the first.
      Long sooner = joined.floor(until - each);
      if (sooner != null) {
        last = Math.max(last, sooner + each);
      }
    }
    long left = last - now;
    return now + left / ((left + MOST_US - 1) / MOST_US);
  }

  /** Returns the gap between two polls near the expected end of a wait. */
  private static long close(long waited) {
    return Math.min(Math.max(waited / 100, LEAST_US), MOST_CLOSE_US);
  }

  /** Returns the widest gap where nothing is learned, or near the expected end. */
  private static long wide(long waited) {
    return Math.max(2 * close(waited), waited / 10 + 2);
  }
}
