package io.antipode.mysql;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Consecutive transaction numbers, unsigned, both ends included. */
record Run(long first, long last) implements Comparable<Run> {
  @Override
  public int compareTo(Run other) {
    int order = Long.compareUnsigned(first, other.first);
    return order == 0 ? Long.compareUnsigned(last, other.last) : order;
  }

  boolean contains(long from, long to) {
    return Long.compareUnsigned(first, from) <= 0 && Long.compareUnsigned(to, last) <= 0;
  }

  /** Returns them in order, with what overlaps or touches made one. */
  static List<Run> joined(Collection<Run> runs) {
    List<Run> joined = new ArrayList<>();
    for (Run each : runs.stream().sorted().toList()) {
      Run before = joined.isEmpty() ? null : joined.get(joined.size() - 1);
      if (before != null && Long.compareUnsigned(each.first, before.last + 1) <= 0) {
        boolean isLonger = Long.compareUnsigned(each.last, before.last) > 0;
        joined.set(joined.size() - 1, new Run(before.first, isLonger ? each.last : before.last));
      } else {
        joined.add(each);
      }
    }
    return List.copyOf(joined);
  }
}
