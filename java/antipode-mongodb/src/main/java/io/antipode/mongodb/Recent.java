package io.antipode.mongodb;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Maps that forget what was used longest ago. */
final class Recent {
  private static final int MOST = 1_000;

  private Recent() {}

  /** Returns an empty one, thread-safe but for its views. */
  static <K, V> Map<K, V> map() {
    return Collections.synchronizedMap(new Bounded<>());
  }

  private static final class Bounded<K, V> extends LinkedHashMap<K, V> {
    private static final long serialVersionUID = 1L;

    Bounded() {
      super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
      return size() > MOST;
    }
  }
}
