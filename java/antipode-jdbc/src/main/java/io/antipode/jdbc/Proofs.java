package io.antipode.jdbc;

import io.antipode.barrier.Floor;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What the server of one connection showed there, and what the open snapshot shows. */
public final class Proofs {
  /** For how long what was shown counts: a server that is reset in place notifies nobody. */
  private static final Duration FRESH = Duration.ofSeconds(2);

  private static final int MOST_LOGS = 64;
  private static final int MOST_PROMISES = 256;

  /** Positions, and promises, that were seen. */
  private record Seen(Map<String, Long> logs, Set<String> promises) {
    static final Seen NOTHING = new Seen(Map.of(), Set.of());

    boolean covers(Floor floor) {
      return floor.writes().stream().allMatch(this::has)
          && floor.promises().stream().map(Promise::id).allMatch(promises::contains);
    }

    private boolean has(WriteId write) {
      Long last = logs.get(write.key());
      return isInteger(write) && last != null && Long.compareUnsigned(last, write.version()) >= 0;
    }

    private static boolean isInteger(WriteId write) {
      return write.opaqueVersion() == null;
    }

    Seen and(Collection<WriteId> writes, Collection<Promise> fulfilled) {
      Map<String, Long> more = new HashMap<>(logs);
      for (WriteId write : writes) {
        if (isInteger(write)) {
          more.merge(write.key(), write.version(), Seen::later);
        }
      }
      Set<String> kept = new HashSet<>(promises);
      fulfilled.forEach(promise -> kept.add(promise.id()));
      return new Seen(
          more.size() <= MOST_LOGS ? more : Map.of(),
          kept.size() <= MOST_PROMISES ? kept : Set.of());
    }

    private static long later(long one, long other) {
      return Long.compareUnsigned(one, other) >= 0 ? one : other;
    }
  }

  private String server = "";
  private Seen known = Seen.NOTHING;
  private long knownNs;
  private @Nullable Floor passed;
  private Seen shown = Seen.NOTHING;
  private @Nullable Floor shownFloor;

  /** Notes which server the connection leads to; what another one showed counts no more. */
  public void reaches(String incarnation) {
    if (!incarnation.equals(server)) {
      server = incarnation;
      forget();
      showNothing();
    }
  }

  private void forget() {
    known = Seen.NOTHING;
    passed = null;
  }

  private void forgetOld() {
    if (System.nanoTime() - knownNs > FRESH.toNanos()) {
      forget();
    }
  }

  /** Notes that a snapshot is taken, which shows what is known now. */
  public void show() {
    forgetOld();
    shown = known;
    shownFloor = passed;
  }

  /** Notes that a snapshot is open of which nobody knows what it shows. */
  public void showNothing() {
    shown = Seen.NOTHING;
    shownFloor = null;
  }

  /** Returns whether the open snapshot shows a floor. */
  public boolean isShown(Floor floor) {
    return floor.isWithin(shownFloor) || shown.covers(floor);
  }

  /** Returns whether the server is known to show a floor now. */
  public boolean isMet(Floor floor) {
    forgetOld();
    if (known.covers(floor)) {
      learn(floor, List.of(), List.of());
      return true;
    }
    if (floor.isProvedOn(server, FRESH)) {
      learn(floor, floor.writes(), floor.promises());
      return true;
    }
    return false;
  }

  /** Notes that a floor was met, and what was seen of it. */
  public void met(Floor floor, Collection<WriteId> writes, Collection<Promise> promises) {
    forgetOld();
    learn(floor, writes, promises);
  }

  private void learn(Floor floor, Collection<WriteId> writes, Collection<Promise> promises) {
    if (passed == null) {
      knownNs = System.nanoTime(); // What is remembered is as old as the first of it.
    }
    passed = floor;
    known = known.and(writes, promises);
  }
}
