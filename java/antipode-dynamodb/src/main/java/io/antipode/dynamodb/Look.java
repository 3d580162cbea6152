package io.antipode.dynamodb;

import io.antipode.aws.Homes;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** One poll of a region. */
final class Look {
  /** What counts of the writes of a promise's transaction. */
  private static final Set<Status> MET = Set.of(Status.VISIBLE, Status.SUPERSEDED);

  private static final String SILENT =
      "its record names no writes: the client that fulfilled it is not instrumented";

  /** What of items is read. */
  enum Wanted {
    STAMP,
    /** The stamp, or else the digest of the whole item. */
    WHOLE,
    /** What a promise's record names. */
    WRITES
  }

  /** Reads items consistently. */
  interface Reading {
    /**
     * Returns what a region has of items; those are left out of which it has no table.
     *
     * @param region where
     * @param items which; none asks whether it answers
     * @param wanted what of them
     */
    Map<Item, Shown> read(String region, Set<Item> items, Wanted wanted) throws Exception;
  }

  private final String region;
  private final Homes<Shown> homes;
  private final Reading reading;
  private final long now;
  private final Map<WriteId, Place> places = new LinkedHashMap<>();
  private final Map<WriteId, Status> statuses = new HashMap<>();
  private final Map<Item, Shown> here = new HashMap<>();

  private Look(String region, Homes<Shown> homes, Reading reading, long now) {
    this.region = region;
    this.homes = homes;
    this.reading = reading;
    this.now = now;
  }

  /** Returns what a region shows of writes now. */
  static Observation at(
      String region, Collection<WriteId> writes, Homes<Shown> homes, Reading reading)
      throws Exception {
    return at(region, writes, homes, reading, Stamps.now());
  }

  /** Returns what a region shows of writes at a Unix microsecond. */
  static Observation at(
      String region, Collection<WriteId> writes, Homes<Shown> homes, Reading reading, long now)
      throws Exception {
    Look look = new Look(region, homes, reading, now);
    for (WriteId write : writes) {
      @Nullable Place place = Place.parse(write.key());
      if (place == null) {
        look.statuses.put(write, Status.UNKNOWN_LOG);
      } else if (write.opaqueVersion() != null) {
        look.statuses.put(write, Status.UNDECIDABLE);
      } else {
        look.places.put(write, place);
      }
    }
    look.poll();
    return look.observation();
  }

  /**
   * Returns which promises are fulfilled in a region: all that their transactions wrote is there.
   *
   * @param table of their records
   */
  static Observation at(
      String region,
      Collection<Promise> promises,
      String table,
      Homes<Shown> homes,
      Reading reading)
      throws Exception {
    Map<Promise, Item> records = new LinkedHashMap<>();
    promises.forEach(each -> records.put(each, Records.of(each, table)));
    Map<Item, Shown> told =
        reading.read(region, new LinkedHashSet<>(records.values()), Wanted.WRITES);
    Map<Promise, List<WriteId>> named = new LinkedHashMap<>();
    records.forEach(
        (promise, item) -> {
          Shown shown = told.getOrDefault(item, Shown.ABSENT);
          if (shown.isPresent()) {
            named.put(promise, Records.writesIn(shown.writes()));
          }
        });
    Set<WriteId> wanted = new LinkedHashSet<>();
    named.values().forEach(wanted::addAll);
    Observation seen =
        wanted.isEmpty() ? Observation.of(region).build() : at(region, wanted, homes, reading);
    Observation.Builder shown = Observation.of(region);
    named.forEach(
        (promise, writes) -> {
          boolean isMet = writes.stream().allMatch(each -> MET.contains(seen.status(each)));
          if (writes.isEmpty()) {
            shown.promise(promise, Status.NOT_YET, SILENT);
          } else {
            shown.promise(promise, isMet ? Status.VISIBLE : Status.NOT_YET);
          }
        });
    return shown.build();
  }

  private Observation observation() {
    Observation.Builder shown = Observation.of(region);
    statuses.forEach((write, status) -> shown.write(write, status, homes.cause(write)));
    places.keySet().stream()
        .filter(each -> statuses.get(each) != Status.NOT_YET)
        .forEach(homes::forget);
    return shown.build();
  }

  private void poll() throws Exception {
    here.putAll(reading.read(region, items(places.keySet()), Wanted.STAMP));
    judge();
    List<WriteId> pending = pending();
    Map<String, Set<WriteId>> asked = new LinkedHashMap<>();
    for (WriteId write : pending) {
      if (homes.miss(write, isDoubtful(write))) {
        asked.computeIfAbsent(place(write).region(), absent -> new LinkedHashSet<>()).add(write);
      }
    }
    asked.forEach(this::askHome);
    Set<Item> unstamped = unstamped(pending);
    if (!unstamped.isEmpty()) {
      here.putAll(reading.read(region, unstamped, Wanted.WHOLE));
    }
    judge();
  }

  /** Returns whether a later stamp is there that proves nothing. */
  private boolean isDoubtful(WriteId write) {
    @Nullable Shown shown = here.get(place(write).item());
    return shown != null && shown.stamp() != null && shown.stamp() > write.version();
  }

  private void askHome(String home, Set<WriteId> writes) {
    Map<Item, Shown> told = Map.of();
    String cause = "";
    try {
      told = reading.read(home, items(writes), Wanted.WHOLE);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      cause = home + " was not asked about it";
    } catch (Exception error) {
      cause = home + " cannot be asked about it: " + error.getMessage();
    }
    for (WriteId write : writes) {
      homes.learn(write, told.get(place(write).item()), cause);
    }
  }

  /** Returns items without a stamp in both regions: only all that is in them tells them apart. */
  private Set<Item> unstamped(List<WriteId> pending) {
    Set<Item> found = new LinkedHashSet<>();
    for (WriteId write : pending) {
      Item item = place(write).item();
      @Nullable Shown home = homes.said(write);
      @Nullable Shown shown = here.get(item);
      if (home != null
          && !home.digest().isEmpty()
          && shown != null
          && shown.isPresent()
          && shown.stamp() == null) {
        found.add(item);
      }
    }
    return found;
  }

  private void judge() {
    places.forEach(
        (write, place) -> {
          @Nullable Shown shown = here.get(place.item());
          statuses.put(
              write,
              shown == null
                  ? Status.UNKNOWN_LOG
                  : judge(write, shown, place.region().equals(region)));
        });
  }

  /** Returns whether what a write deleted has come: one poll saw it, or it was long ago. */
  private boolean hasArrived(WriteId write, Shown shown) {
    if (!Stamps.isDeletion(write.version())) {
      return true;
    }
    if (shown.isPresent()) {
      homes.see(write);
    }
    return homes.hasSeen(write) || Stamps.isSettled(write.version(), now);
  }

  /**
   * Returns what a region shows of a write.
   *
   * @param here what the region that is polled has
   * @param isHome whether it is the one that took the write
   */
  private Status judge(WriteId write, Shown here, boolean isHome) {
    long version = write.version();
    boolean hasArrived = hasArrived(write, here);
    if (here.isOf(version) && (isHome || hasArrived)) {
      return Status.VISIBLE;
    }
    if (isHome) { // Whatever is there instead came after the write, which was acknowledged.
      return Status.SUPERSEDED;
    }
    if (here.stamp() != null && Stamps.supersedes(here.stamp(), version)) {
      return Status.SUPERSEDED;
    }
    @Nullable Shown home = homes.said(write); // Null where it was not asked, or was away.
    boolean isKnown = home != null && !home.isOf(version) && here.isSame(home);
    return isKnown ? Status.SUPERSEDED : Status.NOT_YET;
  }

  private List<WriteId> pending() {
    return places.keySet().stream().filter(each -> statuses.get(each) == Status.NOT_YET).toList();
  }

  private Set<Item> items(Collection<WriteId> writes) {
    Set<Item> items = new LinkedHashSet<>();
    writes.forEach(each -> items.add(place(each).item()));
    return items;
  }

  private Place place(WriteId write) {
    return Objects.requireNonNull(places.get(write));
  }
}
