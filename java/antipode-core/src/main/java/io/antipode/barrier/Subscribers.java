package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Who waits at a watcher, in order: what a poll must ask for, and whom what it showed meets. Of one
 * log, or one key, a larger version comes after a smaller. So what a server does not show yet at
 * one version it shows at none after it, and what it shows at one it shows at all before it: a poll
 * asks for the first of those that wait there and for the last, and costs what became visible.
 *
 * <p>Each stands wherever the last poll of which it was told had not met what it wants. A poll that
 * shows all that one wants shows it there, too: it ends the wait, or the next one does that asks
 * for all of it, at once. No I/O, clock or lock; not thread-safe.
 */
final class Subscribers {
  /** Logs and keys that one poll asks about. */
  static final int MOST_PLACES = 100;

  /** Of those that wait at one place, how many a poll asks for all that they want. */
  static final int FEW = 8;

  /** How many times as many it asks for where all of these were met. */
  private static final int MORE = 4;

  /** A log or a key; what has no order is a place of its own. */
  private record Name(String datastore, String key, @Nullable Dependency alone) {
    static Name of(Dependency each) {
      return isOrdered(each)
          ? new Name(each.datastore(), ((WriteId) each).key(), null)
          : new Name("", "", each);
    }

    boolean isPromise() {
      return alone instanceof Promise;
    }
  }

  /** Where one waits: a place, and a version there. */
  private record Stand(Name name, long version) {
    static Stand of(Dependency each) {
      return new Stand(Name.of(each), versionOf(each));
    }
  }

  /** One subscriber. */
  static final class Waiting {
    private final Subscriber subscriber;

    /** In which order it joined, and when. */
    private final long number;

    private final long joined;

    /** The last poll of which it was told, or that was before it joined. */
    private long told;

    private Set<Dependency> wanted = Set.of();
    private Set<Name> names = Set.of();

    /** What of that no poll has met. */
    private final Set<Stand> stands = new HashSet<>();

    private Waiting(Subscriber subscriber, long number, long joined, long told) {
      this.subscriber = subscriber;
      this.number = number;
      this.joined = joined;
      this.told = told;
    }

    Subscriber subscriber() {
      return subscriber;
    }
  }

  /** Which version one waits for at a place, and in which order it joined. */
  private record Rank(long version, long number) implements Comparable<Rank> {
    @Override
    public int compareTo(Rank other) {
      int compared = Long.compareUnsigned(version, other.version);
      return compared == 0 ? Long.compare(number, other.number) : compared;
    }
  }

  /** Those that stand at one place, in order. */
  private static final class Place {
    final NavigableMap<Rank, Waiting> ranks = new TreeMap<>();
    int few = FEW;

    List<Waiting> first() {
      return ranks.values().stream().limit(few).toList();
    }

    Waiting last() {
      return ranks.lastEntry().getValue();
    }

    /** Returns those who wait for one of these versions. */
    Map<Rank, Waiting> span(long from, long to) {
      return ranks.subMap(new Rank(from, 0), true, new Rank(to, Long.MAX_VALUE), true);
    }
  }

  /** The last poll that showed anything: which one, when, and what. */
  private record Last(long number, long now, Observation observation) {}

  /**
   * One to tell of a poll.
   *
   * @param left when the poll before left it waiting; null where it knows
   */
  record Tell(Waiting one, @Nullable Long left) {}

  /** Whom to tell of a poll, and what. */
  record Told(Observation observation, List<Tell> whom) {
    List<Waiting> all() {
      return whom.stream().map(Tell::one).toList();
    }
  }

  /** When those that wait joined, in order, and how many at each time. */
  private final TreeMap<Long, Integer> counts = new TreeMap<>();

  private final Map<Subscriber, Waiting> all = new LinkedHashMap<>();

  /** In turn. */
  private final LinkedHashMap<Name, Place> places = new LinkedHashMap<>();

  /** To be asked for whole. */
  private final Set<Waiting> due = new LinkedHashSet<>();

  /** Places of this round that no poll was about. */
  private int left;

  /** Places that are promises. */
  private int promised;

  private long joins;
  private long polls;

  /** How many had joined when the last poll began. */
  private long begun;

  /** The last poll of which everybody was told. */
  private long toldAll;

  /** Whether a pause came before the last poll. */
  private boolean isFirst = true;

  /** Whether everybody is asked for whole after the next pause. */
  private boolean isMoved;

  private boolean isUnasked;

  private Set<Waiting> asked = new LinkedHashSet<>();
  private Set<Dependency> wanted = new HashSet<>();
  private Set<Name> about = new HashSet<>();
  private Last last = new Last(0, 0, Observation.of("").build());

  boolean isEmpty() {
    return all.isEmpty();
  }

  /** Returns those that wait. */
  List<Subscriber> all() {
    return List.copyOf(all.keySet());
  }

  /** Returns when those that wait joined. */
  NavigableSet<Long> joined() {
    return counts.navigableKeySet();
  }

  /** Returns whether anybody waits for a promise. */
  boolean isPromised() {
    return promised > 0;
  }

  /** Returns whether the next poll comes at once: the last one was not about all of it. */
  boolean isUnasked() {
    return isUnasked;
  }

  /** Takes somebody in; one that waits already is asked for once more. */
  void join(Subscriber subscriber, Set<Dependency> wants, long now) {
    Waiting one = all.get(subscriber);
    if (one == null) {
      one = new Waiting(subscriber, joins++, now, polls);
      all.put(subscriber, one);
      counts.merge(now, 1, Integer::sum);
    }
    move(one, wants);
    due.add(one);
  }

  /** Forgets somebody who may wait. */
  void leave(Subscriber subscriber) {
    Waiting one = all.remove(subscriber);
    if (one != null) {
      counts.computeIfPresent(one.joined, (at, count) -> count == 1 ? null : count - 1);
      due.remove(one);
      for (Stand each : List.copyOf(one.stands)) {
        unstand(one, each);
      }
    }
  }

  /** Returns what the next poll is for: at most so many places, or all that one wants. */
  Set<Dependency> asks() {
    polls++;
    begun = joins;
    asked = new LinkedHashSet<>();
    wanted = new HashSet<>();
    about = new HashSet<>();
    isFirst = !isUnasked;
    if (isFirst) {
      left = places.size();
      if (isMoved) {
        due.addAll(all.values());
        isMoved = false;
      }
    }
    Iterator<Waiting> next = due.iterator();
    while (next.hasNext() && ask(next.next(), MOST_PLACES / 2)) {
      next.remove();
    }
    takeTurns();
    return wanted;
  }

  /** Asks for the first of those at the places whose turn it is, and for the last. */
  private void takeTurns() {
    for (Name name : places.keySet().stream().limit(Math.min(left, MOST_PLACES)).toList()) {
      Place place = at(name);
      List<Waiting> first = place.first();
      if (!ask(first.get(0), MOST_PLACES)) {
        return;
      }
      first.forEach(one -> ask(one, MOST_PLACES));
      ask(place.last(), MOST_PLACES);
      left--;
      if (places.size() > MOST_PLACES) {
        places.remove(name);
        places.put(name, place);
      }
    }
  }

  /** Asks for all that one wants; returns false where the poll would be about too many places. */
  private boolean ask(Waiting one, int most) {
    if (asked.contains(one)) {
      return true;
    }
    long more = one.names.stream().filter(each -> !about.contains(each)).count();
    if (!about.isEmpty() && more > 0 && about.size() + more > most) {
      return false;
    }
    about.addAll(one.names);
    wanted.addAll(one.wanted);
    asked.add(one);
    return true;
  }

  /** Returns whom to tell that the poll failed: all who waited when it began. */
  List<Waiting> failed() {
    toldAll = polls;
    isUnasked = false;
    List<Waiting> told = all.values().stream().filter(one -> one.number < begun).toList();
    due.addAll(told);
    return told;
  }

  /** Takes in what the poll for what {@link #asks} returned shows; returns whom to tell. */
  Told shown(Observation observation, long now) {
    Map<Name, Long> late = new HashMap<>();
    Map<Name, Long> met = new HashMap<>();
    List<Stand> over = new ArrayList<>();
    sortOut(observation, late, met, over);
    isUnasked = left > 0 || !due.isEmpty();
    Set<Waiting> touched = new LinkedHashSet<>();
    for (Stand each : over) {
      touched.addAll(taken(each.name, each.version, each.version));
      Place place = places.get(each.name);
      if (place != null) {
        askAgain(place.ranks.values());
      }
    }
    Set<Name> known = new HashSet<>(late.keySet());
    met.forEach(
        (name, version) -> {
          Set<Waiting> taken = taken(name, 0, version);
          touched.addAll(taken);
          Place place = places.get(name);
          if (!taken.isEmpty() && place != null && !isLate(place, late.get(name))) {
            known.remove(name); // All of the first are met, and more may be.
            place.few = Math.min(place.few * MORE, Integer.MAX_VALUE / MORE);
            askAgain(place.first());
          }
        });
    known.retainAll(places.keySet());
    known.forEach(name -> at(name).few = FEW);
    return judged(observation, now, touched, met);
  }

  /** Returns whether the first of a place waits for what is known to be late. */
  private static boolean isLate(Place place, @Nullable Long late) {
    return late != null && Long.compareUnsigned(place.ranks.firstKey().version, late) >= 0;
  }

  /** Finds, by place, the first version that is late and the last that is met; and what is over. */
  private void sortOut(
      Observation observation, Map<Name, Long> late, Map<Name, Long> met, List<Stand> over) {
    for (Dependency each : wanted) {
      Status status = observation.status(each);
      Stand stand = Stand.of(each);
      if (status.isPending()) {
        late.merge(stand.name, stand.version, (a, b) -> Long.compareUnsigned(a, b) <= 0 ? a : b);
      } else if (status.isMet()) {
        met.merge(stand.name, stand.version, (a, b) -> Long.compareUnsigned(a, b) >= 0 ? a : b);
      } else {
        over.add(stand);
      }
    }
  }

  /** Tells those whom the poll asked for, and those of some of whom it shows all. */
  private Told judged(
      Observation observation, long now, Set<Waiting> touched, Map<Name, Long> met) {
    List<Waiting> told = new ArrayList<>(asked);
    Set<WriteId> found = new HashSet<>();
    for (Waiting one : touched) {
      if (asked.contains(one)) {
        continue;
      }
      List<Dependency> missing =
          one.wanted.stream().filter(each -> !wanted.contains(each)).toList();
      if (missing.stream().allMatch(each -> isMet(each, met))) {
        for (Dependency each : missing) {
          if (each instanceof WriteId write) {
            found.add(write);
          }
        }
        told.add(one);
      } else {
        askAgain(List.of(one));
      }
    }
    Observation shown = found.isEmpty() ? observation : observation.withVisible(found);
    Last before = last;
    last = new Last(polls, now, shown);
    if (before.number > 0 && !shown.server().equals(before.observation.server())) {
      if (isFirst) { // Its history may be another.
        askAgain(all.values());
      } else { // Where it changes from poll to poll, pauses stay.
        isMoved = true;
      }
    }
    told.sort(Comparator.comparingLong(one -> one.number));
    return new Told(
        shown,
        told.stream()
            .map(one -> new Tell(one, knows(one) < before.number ? Long.valueOf(before.now) : null))
            .collect(Collectors.toList()));
  }

  private static boolean isMet(Dependency each, Map<Name, Long> met) {
    Long until = met.get(Name.of(each));
    return until != null && Long.compareUnsigned(versionOf(each), until) <= 0;
  }

  /** Asks at once for all that those of some want whom this poll did not ask for. */
  private void askAgain(Collection<Waiting> some) {
    for (Waiting one : some) {
      if (!asked.contains(one)) {
        due.add(one);
        isUnasked = true;
      }
    }
  }

  /** Returns the last poll of which one was told. */
  private long knows(Waiting one) {
    return Math.max(one.told, toldAll);
  }

  /** Forgets those who were told and wait no longer; returns when they joined. */
  List<Long> settle(Collection<Waiting> told, String datastore) {
    List<Long> ended = new ArrayList<>();
    for (Waiting one : told) {
      if (all.get(one.subscriber) != one) {
        continue;
      }
      one.told = polls;
      Set<Dependency> wants = one.subscriber.wanted(datastore);
      if (wants.isEmpty()) {
        ended.add(one.joined);
        leave(one.subscriber);
      } else {
        move(one, wants);
      }
    }
    return ended;
  }

  /** Has one stand where the last poll had not met what it wants. */
  private void move(Waiting one, Set<Dependency> wants) {
    if (!wants.equals(one.wanted)) {
      one.wanted = Set.copyOf(wants);
      one.names = wants.stream().map(Name::of).collect(Collectors.toUnmodifiableSet());
    }
    Set<Stand> stands = new HashSet<>();
    for (Dependency each : wants) {
      if (last.observation.status(each).isPending()) {
        stands.add(Stand.of(each));
      }
    }
    if (stands.isEmpty()) {
      wants.forEach(each -> stands.add(Stand.of(each)));
    }
    for (Stand each : List.copyOf(one.stands)) {
      if (!stands.contains(each)) {
        unstand(one, each);
      }
    }
    for (Stand each : stands) {
      if (one.stands.add(each)) {
        stand(one, each);
      }
    }
  }

  private void stand(Waiting one, Stand at) {
    Place place = places.get(at.name);
    if (place == null) {
      place = new Place();
      places.put(at.name, place);
      promised += at.name.isPromise() ? 1 : 0;
    }
    place.ranks.put(new Rank(at.version, one.number), one);
  }

  private void unstand(Waiting one, Stand at) {
    one.stands.remove(at);
    Place place = at(at.name);
    place.ranks.remove(new Rank(at.version, one.number));
    dropIfEmpty(at.name, place);
  }

  /** Takes from a place those who wait there for one of these versions. */
  private Set<Waiting> taken(Name name, long from, long to) {
    Place place = places.get(name);
    if (place == null) {
      return Set.of();
    }
    Map<Rank, Waiting> span = place.span(from, to);
    span.forEach((rank, one) -> one.stands.remove(new Stand(name, rank.version)));
    Set<Waiting> taken = new LinkedHashSet<>(span.values());
    span.clear();
    dropIfEmpty(name, place);
    return taken;
  }

  private Place at(Name name) {
    Place found = places.get(name);
    if (found == null) {
      throw new IllegalStateException("nobody stands at " + name);
    }
    return found;
  }

  private void dropIfEmpty(Name name, Place place) {
    if (place.ranks.isEmpty()) {
      places.remove(name);
      promised -= name.isPromise() ? 1 : 0;
      left = Math.min(left, places.size());
    }
  }

  private static boolean isOrdered(Dependency each) {
    return each instanceof WriteId write && write.opaqueVersion() == null;
  }

  private static long versionOf(Dependency each) {
    return isOrdered(each) ? ((WriteId) each).version() : 0;
  }
}
