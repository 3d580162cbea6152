package io.antipode.mongodb;

import io.antipode.barrier.Floor;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.HashMap;
import java.util.Map;

/** What reads are known to be shown: the latest position of each log, and promises. Immutable. */
record Shown(Map<String, Long> positions) {
  static final Shown NOTHING = new Shown(Map.of());

  Shown {
    positions = Map.copyOf(positions);
  }

  /** Returns what a floor demands. */
  static Shown of(Floor floor) {
    Map<String, Long> positions = new HashMap<>();
    floor.promises().forEach(each -> positions.put(name(each), 0L));
    for (WriteId write : floor.writes()) {
      if (write.opaqueVersion() == null) {
        positions.merge(write.key(), write.version(), Shown::later);
      }
    }
    return new Shown(positions);
  }

  /** A log's name has no space in front. */
  private static String name(Promise promise) {
    return " " + promise.id();
  }

  private static long later(long one, long other) {
    return Long.compareUnsigned(one, other) >= 0 ? one : other;
  }

  /** Returns whether it reaches all that a floor demands. */
  boolean covers(Floor floor) {
    return floor.writes().stream().allMatch(this::reaches) && keeps(floor);
  }

  private boolean reaches(WriteId write) {
    Long shown = positions.get(write.key());
    return write.opaqueVersion() == null
        && shown != null
        && Long.compareUnsigned(write.version(), shown) <= 0;
  }

  /** Returns whether it names every promise that a floor demands. */
  boolean keeps(Floor floor) {
    return floor.promises().stream().allMatch(each -> positions.containsKey(name(each)));
  }

  /** Returns both. */
  Shown with(Shown other) {
    Map<String, Long> both = new HashMap<>(positions);
    other.positions.forEach((log, version) -> both.merge(log, version, Shown::later));
    return new Shown(both);
  }
}
