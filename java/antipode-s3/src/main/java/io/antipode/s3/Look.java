package io.antipode.s3;

import io.antipode.aws.Homes;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
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
  /**
   * Versions to be asked for; none asks whether the region answers.
   *
   * @param region where
   * @param versions which
   * @param isWhole whether the newest version is wanted of the key of one that is not there
   * @param isOfCopies whether they are copies: these may be there before reads show them
   */
  record Question(String region, Set<Version> versions, boolean isWhole, boolean isOfCopies) {}

  /** Asks a region. */
  interface Asking {
    /** Returns what each version is; those are left out of which the region has no bucket. */
    Map<Version, Shown> ask(Question question) throws Exception;
  }

  private final String region;
  private final Map<String, String> buckets;
  private final Homes<Shown> homes;
  private final Asking asking;
  private final Map<WriteId, Place> places = new LinkedHashMap<>();
  private final Map<WriteId, @Nullable Shown> here = new HashMap<>();
  private final Map<WriteId, Status> statuses = new HashMap<>();

  private Look(String region, Map<String, String> buckets, Homes<Shown> homes, Asking asking) {
    this.region = region;
    this.buckets = buckets;
    this.homes = homes;
    this.asking = asking;
  }

  /**
   * Returns what a region shows of writes.
   *
   * @param buckets for buckets of other regions, the one here that has their copies
   * @param homes what the regions of writes have said
   */
  static Observation at(
      String region,
      Collection<WriteId> writes,
      Map<String, String> buckets,
      Homes<Shown> homes,
      Asking asking)
      throws Exception {
    Look look = new Look(region, buckets, homes, asking);
    for (WriteId write : writes) {
      @Nullable Place place = Place.parse(write.key());
      if (place == null) {
        look.statuses.put(write, Status.UNKNOWN_LOG);
      } else if (write.opaqueVersion() == null) {
        look.statuses.put(write, Status.UNDECIDABLE);
      } else {
        look.places.put(write, place);
      }
    }
    look.poll();
    return look.observation();
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
    if (places.isEmpty()) {
      Map<Version, Shown> unused = asking.ask(new Question(region, Set.of(), false, false));
      return;
    }
    // What is gone where it was written is gone at once, or overwritten.
    askHere(places.keySet().stream().filter(this::isAtHome).toList(), true, false);
    askHere(places.keySet().stream().filter(each -> !isAtHome(each)).toList(), false, true);
    judge();
    Map<String, List<WriteId>> asked = new LinkedHashMap<>();
    places.forEach(
        (write, place) -> {
          if (statuses.get(write) == Status.NOT_YET && homes.miss(write, false)) {
            asked.computeIfAbsent(place.region(), absent -> new ArrayList<>()).add(write);
          }
        });
    for (Map.Entry<String, List<WriteId>> each : asked.entrySet()) {
      askHome(each.getKey(), each.getValue());
      askHere(each.getValue(), true, true);
    }
    judge();
  }

  private Place place(WriteId write) {
    return Objects.requireNonNull(places.get(write));
  }

  private Version version(WriteId write, String bucket) {
    return new Version(bucket, place(write).key(), Objects.requireNonNull(write.opaqueVersion()));
  }

  /** Returns a version in the bucket of this region that has its copies. */
  private Version local(WriteId write) {
    String bucket = place(write).bucket();
    return version(write, buckets.getOrDefault(bucket, bucket));
  }

  /** Returns whether the bucket that is polled is the one that took a write. */
  private boolean isAtHome(WriteId write) {
    Place place = place(write);
    return place.region().equals(region) && local(write).bucket().equals(place.bucket());
  }

  private void askHere(List<WriteId> writes, boolean isWhole, boolean isOfCopies) throws Exception {
    if (writes.isEmpty()) {
      return;
    }
    Set<Version> versions = new LinkedHashSet<>();
    writes.forEach(each -> versions.add(local(each)));
    Map<Version, Shown> told = asking.ask(new Question(region, versions, isWhole, isOfCopies));
    writes.forEach(each -> here.put(each, told.get(local(each))));
  }

  private void askHome(String home, List<WriteId> writes) {
    Set<Version> versions = new LinkedHashSet<>();
    writes.forEach(each -> versions.add(version(each, place(each).bucket())));
    Map<Version, Shown> told = Map.of();
    @Nullable String away = null;
    try {
      told = asking.ask(new Question(home, versions, true, false));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      away = home + " was not asked about it";
    } catch (Exception error) {
      away = home + " cannot be asked about it: " + error.getMessage();
    }
    for (WriteId write : writes) {
      Version version = version(write, place(write).bucket());
      @Nullable Shown shown = told.get(version);
      homes.learn(write, shown, away == null ? cause(version, home, shown) : away);
    }
  }

  /** Returns why a write may not come, for a person. */
  private static String cause(Version version, String region, @Nullable Shown home) {
    String bucket = "the bucket '" + version.bucket() + "' in " + region;
    if (home == null) {
      return bucket + " is not there";
    }
    if (home.isPresent() && home.replication().isEmpty()) {
      return bucket + " reports no replication of it: does a rule copy it?";
    }
    return home.replication().equals(Shown.FAILED)
        ? bucket + " could not copy it: " + Shown.FAILED
        : "";
  }

  private void judge() {
    for (WriteId write : places.keySet()) {
      @Nullable Shown shown = here.get(write);
      statuses.put(
          write,
          shown == null ? Status.UNKNOWN_LOG : shown.judge(homes.said(write), isAtHome(write)));
    }
  }
}
