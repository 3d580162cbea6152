package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What one server is known to show, over one connection: sound only while its history cannot change
 * under the connection. A position that regresses drops everything.
 */
final class Knowledge {
  /** How long a server that did not know a log is taken not to know it. */
  private static final long UNKNOWN_NS = Duration.ofSeconds(30).toNanos();

  /** Writes of unknown logs that are remembered: the names of logs come from outside. */
  private static final int MOST_UNKNOWN = 1_000;

  private record Log(String datastore, String key) {}

  private String server = "";
  private String caveat = "";
  private final Map<Log, Long> positions = new HashMap<>();
  private final Set<WriteId> opaque = new HashSet<>();

  /** Ids: who waits may know another expiry. */
  private final Set<String> fulfilled = new HashSet<>();

  /** Writes whose logs the server did not know, and when. */
  private final Map<WriteId, Long> unknown = new HashMap<>();

  synchronized void learn(Observation observation, long now) {
    if (!observation.server().equals(server)) {
      forget();
      server = observation.server();
    }
    caveat = observation.caveat();
    for (Map.Entry<Dependency, Observation.Said> said : observation.said().entrySet()) {
      if (said.getKey() instanceof WriteId write) {
        noteUnknown(write, said.getValue().status(), now);
      }
      if (said.getValue().status() == Status.VISIBLE) {
        add(said.getKey());
      } else if (has(said.getKey())) {
        forget();
        return;
      }
    }
  }

  /** Returns the part that is known to be visible; null where that is nothing. */
  synchronized @Nullable Observation recall(Collection<Dependency> wanted) {
    Observation.Builder known = Observation.of(server).caveat(caveat);
    boolean isEmpty = true;
    for (Dependency each : wanted) {
      if (has(each)) {
        isEmpty = false;
        if (each instanceof WriteId write) {
          known.write(write, Status.VISIBLE);
        } else if (each instanceof Promise promise) {
          known.promise(promise, Status.VISIBLE);
        }
      }
    }
    return isEmpty ? null : known.build();
  }

  /** Returns whether the server did not know the log of a write, so recently that it counts. */
  synchronized boolean lacks(WriteId write, long now) {
    Long at = unknown.get(write);
    return at != null && now - at < UNKNOWN_NS;
  }

  synchronized void forget() {
    server = "";
    positions.clear();
    opaque.clear();
    fulfilled.clear();
    unknown.clear();
  }

  /** Remembers that the log of a write is unknown, and forgets it by any other answer. */
  private void noteUnknown(WriteId write, Status status, long now) {
    unknown.remove(write);
    if (status == Status.UNKNOWN_LOG) {
      if (unknown.size() >= MOST_UNKNOWN) {
        unknown.clear();
      }
      unknown.put(write, now);
    }
  }

  private void add(Dependency shown) {
    if (shown instanceof Promise promise) {
      fulfilled.add(promise.id());
    } else if (shown instanceof WriteId write && write.opaqueVersion() != null) {
      if (!write.key().equals(Shim.PRIMARY_KEY)) { // Which primary it follows is asked each time.
        opaque.add(write);
      }
    } else if (shown instanceof WriteId write) {
      positions.merge(
          new Log(write.datastore(), write.key()),
          write.version(),
          (held, seen) -> Long.compareUnsigned(held, seen) >= 0 ? held : seen);
    }
  }

  private boolean has(Dependency wanted) {
    if (wanted instanceof Promise promise) {
      return fulfilled.contains(promise.id());
    }
    if (wanted instanceof WriteId write && write.opaqueVersion() == null) {
      Long position = positions.get(new Log(write.datastore(), write.key()));
      return position != null && Long.compareUnsigned(write.version(), position) <= 0;
    }
    return wanted instanceof WriteId write && opaque.contains(write);
  }
}
