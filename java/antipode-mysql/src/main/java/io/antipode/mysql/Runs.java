package io.antipode.mysql;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where the run of consecutive numbers begins that a new transaction belongs to.
 *
 * <p>Waiting for {@code 1-N} never ends where a gap below N stays open, and waiting for N alone
 * passes while those before it are missing. So after a gap a write stands for the run that its
 * number is in. A member of a group numbers within blocks, and where these lie is not reported: a
 * number of a block that was not seen before begins a run. Thread-safe.
 */
final class Runs {
  /** Of logs with gaps; the run of any other begins at 1. */
  private final Map<String, List<Run>> runs = new HashMap<>();

  private long block;
  private boolean isKnown;

  /** Returns whether a server was asked; before that every run begins at 1. */
  synchronized boolean isKnown() {
    return isKnown;
  }

  /**
   * Adopts what a server has executed.
   *
   * @param groupBlock the size of its blocks for a member of a group, else 0
   */
  synchronized void learn(GtidSet executed, long groupBlock) {
    isKnown = true;
    block = groupBlock;
    executed.logs().forEach(this::learn);
  }

  private void learn(String log, List<Run> known) {
    if (block != 0 || known.stream().anyMatch(each -> each.first() != 1)) {
      runs.put(log, new ArrayList<>(known));
    } else {
      runs.remove(log);
    }
  }

  /** Returns the first number of the run that a number of a log is in. */
  synchronized long first(String log, long number) {
    List<Run> known = runs.get(log);
    if (known == null) {
      boolean isFirst = block == 0 || Long.compareUnsigned(number, block) <= 0;
      return isFirst ? 1 : begin(log, number);
    }
    for (int nth = known.size() - 1; nth >= 0; nth--) {
      Run run = known.get(nth);
      if (Long.compareUnsigned(run.first(), number) <= 0) {
        boolean isWithin = Long.compareUnsigned(number, run.last()) <= 0;
        if (!isWithin && !isOfOneBlock(run.last(), number)) {
          return begin(log, number);
        }
        known.set(nth, isWithin ? run : new Run(run.first(), number));
        return run.first();
      }
    }
    return begin(log, number);
  }

  private boolean isOfOneBlock(long one, long other) {
    return block == 0
        || Long.divideUnsigned(one - 1, block) == Long.divideUnsigned(other - 1, block);
  }

  private long begin(String log, long number) {
    List<Run> known = runs.computeIfAbsent(log, each -> new ArrayList<>());
    known.add(new Run(number, number));
    Collections.sort(known);
    return number;
  }
}
