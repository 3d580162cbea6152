package io.antipode.barrier;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Who waits at a watcher, and since which microsecond. Not thread-safe. */
final class Subscribers {
  private final Map<Subscriber, Long> since = new LinkedHashMap<>();

  /** The same times in order, and how many joined at each. */
  private final TreeMap<Long, Integer> counts = new TreeMap<>();

  /** Takes somebody in; one that waits already waits on. */
  void join(Subscriber subscriber, long now) {
    if (since.putIfAbsent(subscriber, now) == null) {
      counts.merge(now, 1, Integer::sum);
    }
  }

  /** Forgets somebody; returns when it joined, or null where it did not wait. */
  @Nullable Long leave(Subscriber subscriber) {
    Long joined = since.remove(subscriber);
    if (joined != null) {
      counts.computeIfPresent(joined, (at, count) -> count == 1 ? null : count - 1);
    }
    return joined;
  }

  /** Forgets those of some that wait no longer; returns when they joined, in order. */
  List<Long> leave(Collection<Subscriber> some, String datastore) {
    List<Long> ended = new ArrayList<>();
    for (Subscriber each : some) {
      Long joined = each.wanted(datastore).isEmpty() ? leave(each) : null;
      if (joined != null) {
        ended.add(joined);
      }
    }
    ended.sort(null);
    return ended;
  }

  /** Returns when those that wait joined. */
  NavigableSet<Long> joined() {
    return counts.navigableKeySet();
  }

  List<Subscriber> all() {
    return List.copyOf(since.keySet());
  }

  boolean isEmpty() {
    return since.isEmpty();
  }

  void clear() {
    since.clear();
    counts.clear();
  }
}
