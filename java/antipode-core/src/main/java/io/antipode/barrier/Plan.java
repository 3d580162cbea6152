package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Which dependencies of a lineage a barrier waits for, and what is settled before it starts. */
final class Plan {
  private static final String ABSENT = "this process has no shim for it";

  /** Reasons of incompleteness after which waiting for the primary's position is enough. */
  private static final Set<String> FENCED = Set.of("size", "unsampled");

  private final Lineage lineage;
  private final BarrierOptions options;
  private final boolean isOff;
  private final boolean isScoped;
  private final Instant now;

  /** What to wait for, now or at the read, by datastore. */
  final Map<String, Set<Dependency>> pending = new HashMap<>();

  /** Outcomes that need no waiting. */
  final List<Outcome> settled = new ArrayList<>();

  /** What is missing within the datastores that are asked for. */
  final Set<Incomplete> incomplete;

  /** What of that a fence discharges, by datastore. */
  final Map<String, Set<Incomplete>> fenced;

  /**
   * Sorts dependencies.
   *
   * @param own the promises that who waits is about to fulfil
   * @param isOff whether nothing is waited for
   * @param isScoped whether floors can be left
   */
  Plan(
      Lineage lineage,
      BarrierOptions options,
      boolean isOff,
      Instant now,
      Set<Promise.Name> own,
      boolean isScoped) {
    this.lineage = lineage;
    this.options = options;
    this.isOff = isOff;
    this.now = now;
    this.isScoped = isScoped;
    Map<String, Way> ways = new HashMap<>();
    for (WriteId write : lineage.writes()) {
      take(write, ways.computeIfAbsent(write.datastore(), this::wayOfWrites));
    }
    for (Promise promise : lineage.promises()) {
      if (own.contains(promise.name())) {
        settled.add(Outcome.of(promise, Status.EXCLUDED, "this branch fulfils it"));
      } else {
        take(promise, wayOf(promise));
      }
    }
    incomplete =
        missing().stream()
            .filter(mark -> !isOff && options.asks(mark.subject()))
            .collect(Collectors.toUnmodifiableSet());
    fenced = fenced();
  }

  /** An outcome that needs no waiting, or none. */
  private record Way(@Nullable Status status, String cause, boolean isReported) {
    static final Way WAITED_FOR = new Way(null, "", false);
    static final Way EXCLUDED = new Way(Status.EXCLUDED, "", false);
    static final Way NOT_WAITABLE =
        new Way(Status.NOT_WAITABLE, "a message store without receipts", false);
    static final Way CANNOT_WAIT =
        new Way(Status.UNKNOWN_STORE, "nothing that is registered can wait for it", false);
    static final Way ABANDONED =
        new Way(
            Status.ABANDONED,
            "it expired, and nothing registered can ask whether it was fulfilled",
            false);
    static final Way UNDECIDABLE =
        new Way(Status.UNDECIDABLE, "what is registered cannot ask for promises", false);
  }

  /**
   * Returns outcomes of what a lineage has of datastores for which this process has no shim at all.
   *
   * @param own the promises that who waits is about to fulfil
   * @param reported whether they are let pass
   */
  static List<Outcome> absent(Lineage lineage, Set<Promise.Name> own, boolean reported) {
    return Stream.concat(
            lineage.writes().stream(),
            lineage.promises().stream().filter(each -> !own.contains(each.name())))
        .filter(each -> Shims.of(each.datastore()).isEmpty())
        .map(each -> Outcome.of(each, Status.UNKNOWN_STORE, ABSENT).withReported(reported))
        .toList();
  }

  private void take(Dependency dependency, Way way) {
    if (way.status == null) {
      pending.computeIfAbsent(dependency.datastore(), name -> new HashSet<>()).add(dependency);
    } else {
      settled.add(Outcome.of(dependency, way.status, way.cause).withReported(way.isReported));
    }
  }

  private Way wayOfWrites(String datastore) {
    return isOff || !options.asks(datastore) ? Way.EXCLUDED : way(datastore);
  }

  private Way way(String datastore) {
    List<Shim> shims = Shims.of(datastore);
    if (shims.isEmpty()) {
      return absent();
    }
    if (shims.stream().noneMatch(Shim::isWaitable)) {
      return Way.NOT_WAITABLE;
    }
    boolean canWait =
        options.isAtRead() ? shims.stream().anyMatch(Shim::holdsReads) : looking(datastore) != null;
    return canWait ? Way.WAITED_FOR : Way.CANNOT_WAIT;
  }

  /**
   * A datastore of which this process has nothing is another team's, most likely: that is reported,
   * unless it was asked for by name, or nothing that can be waited for was set up here.
   */
  private Way absent() {
    return new Way(Status.UNKNOWN_STORE, ABSENT, !options.isOnlyGiven() && Shims.anyIsWaitable());
  }

  /** One that expired is asked for all the same: what was fulfilled in time stays visible. */
  private Way wayOf(Promise promise) {
    if (isOff || !options.asks(promise.datastore())) {
      return Way.EXCLUDED;
    }
    List<Shim> shims = Shims.of(promise.datastore());
    if (shims.isEmpty()) {
      return absent();
    }
    if (canPoll(promise, shims)) {
      return Way.WAITED_FOR;
    }
    if (shims.stream().noneMatch(Shim::isWaitable)) {
      return Way.NOT_WAITABLE;
    }
    Instant end = Instant.ofEpochSecond(promise.expiresS()).plus(Policies.PROMISE_GRACE);
    if (end.isBefore(now)) {
      return Way.ABANDONED;
    }
    Way way = way(promise.datastore());
    return way.status == null ? Way.UNDECIDABLE : way;
  }

  private boolean canPoll(Promise promise, List<Shim> shims) {
    if (options.isAtRead()) {
      return shims.stream().anyMatch(shim -> shim.holdsReads() && shim.pollsForPromises());
    }
    Shim looking = looking(promise.datastore());
    return looking != null && looking.pollsForPromises();
  }

  /**
   * Returns the shim to wait at now. A primary stands for replicas that cannot be polled only where
   * a floor is left for their reads.
   */
  private @Nullable Shim looking(String datastore) {
    Shim looking = Shims.looking(datastore);
    boolean isEnough =
        looking == null
            || looking.readsFrom() == ReadsFrom.REPLICA
            || isScoped
            || !Shims.readsElsewhere(datastore);
    return isEnough ? looking : null;
  }

  /** An item of an unknown kind may be a dependency, unless its kind is a digit. */
  private Set<Incomplete> missing() {
    Set<Incomplete> missing = new HashSet<>(lineage.incomplete());
    if (lineage.unknown().stream().anyMatch(item -> item.charAt(0) < '0' || item.charAt(0) > '9')) {
      missing.add(new Incomplete("", "unknown_item"));
    }
    return missing;
  }

  private Map<String, Set<Incomplete>> fenced() {
    Map<String, Set<Incomplete>> found = new HashMap<>();
    for (Incomplete mark : incomplete) {
      if (FENCED.contains(mark.reason())
          && Shims.of(mark.subject()).stream().anyMatch(Shim::canFence)
          && way(mark.subject()).status == null) {
        found.computeIfAbsent(mark.subject(), name -> new HashSet<>()).add(mark);
      }
    }
    return found;
  }
}
