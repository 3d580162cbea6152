package io.antipode.redis;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Where earlier logs ended, as read from the server's log history; facts never change. */
final class LogHistory {
  /** The replicated hash in which writers keep where earlier logs ended. */
  static final String KEY = "antipode:log";

  private static final int MOST_LOGS = 64;

  private final Map<String, Map<String, Long>> ends = new ConcurrentHashMap<>();

  /** Returns the last shared offset of each earlier log, for servers that are on a log. */
  Map<String, Long> of(String log) {
    return ends.getOrDefault(log, Map.of());
  }

  /** Adopts what a server on a log has of earlier ones; null for what it has not. */
  void learn(String log, List<String> earlier, List<@Nullable String> values) {
    if (ends.size() > MOST_LOGS) {
      ends.clear();
    }
    Map<String, Long> held = new HashMap<>(of(log));
    for (int nth = 0; nth < Math.min(earlier.size(), values.size()); nth++) {
      String digits = values.get(nth);
      if (digits != null && digits.matches("[0-9]{1,18}")) {
        held.put(earlier.get(nth), Long.valueOf(digits));
      }
    }
    ends.put(log, Map.copyOf(held));
  }
}
