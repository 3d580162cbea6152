package io.antipode.s3;

import io.antipode.aws.Homes;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.s3.Look.Question;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** What the shim of S3 decides without a service: next to what it is made of. */
public final class S3Decisions {
  private S3Decisions() {}

  /**
   * A version of an object.
   *
   * @param replication its status; empty without one
   */
  public record Stands(String version, String replication) {}

  /**
   * Returns what the last of so many polls of a region says of each write.
   *
   * @param buckets for buckets of other regions, the one here that has their copies
   * @param regions that answer: of each its buckets, of these their keys with the versions of each,
   *     from the oldest on
   */
  public static List<Status> poll(
      String region,
      Map<String, String> buckets,
      Map<String, Map<String, Map<String, List<Stands>>>> regions,
      int polls,
      List<WriteId> writes)
      throws Exception {
    Homes<Shown> homes = new Homes<>();
    Observation shown = Observation.of(region).build();
    for (int poll = 0; poll < polls; poll++) {
      shown =
          Look.at(
              region,
              writes,
              buckets,
              homes,
              question -> {
                Map<String, Map<String, List<Stands>>> found = regions.get(question.region());
                if (found == null) {
                  throw new IOException("away");
                }
                return shown(found, question);
              });
    }
    return writes.stream().map(shown::status).toList();
  }

  private static Map<Version, Shown> shown(
      Map<String, Map<String, List<Stands>>> buckets, Question question) {
    Map<Version, Shown> shown = new HashMap<>();
    for (Version version : question.versions()) {
      Map<String, List<Stands>> bucket = buckets.get(version.bucket());
      if (bucket != null) {
        List<Stands> held = bucket.getOrDefault(version.key(), List.of());
        shown.put(version, shown(held, version.number(), question.isWhole()));
      }
    }
    return shown;
  }

  private static Shown shown(List<Stands> held, String number, boolean isWhole) {
    String newest = held.isEmpty() || !isWhole ? "" : held.get(held.size() - 1).version;
    return held.stream()
        .filter(each -> each.version.equals(number))
        .findFirst()
        .map(each -> new Shown(true, each.replication, ""))
        .orElseGet(() -> new Shown(false, "", newest));
  }

  /** Returns how an object is named as something that was written in a region; null for none. */
  public static @Nullable String named(String bucket, String key, String region) {
    Place place = Place.of(bucket, key, region);
    if (place == null) {
      return null;
    }
    if (!place.equals(Place.parse(place.named()))) {
      throw new IllegalStateException("a reader finds another object than " + place.named());
    }
    return place.named();
  }

  /** Returns what an operation does. */
  public static String kind(String operation, boolean isOfVersion) {
    return Operations.kind(operation, isOfVersion).name().toLowerCase(Locale.ROOT);
  }

  /** Returns the lineage that lies in an object's metadata. */
  public static Lineage found(Map<String, String> metadata) {
    return Metadata.lineageOf(metadata, "posts");
  }

  /** Returns the names of the metadata with which an object is put; null without room for ours. */
  public static @Nullable Set<String> labelled(Map<String, String> metadata, Lineage lineage) {
    Map<String, String> labelled = Metadata.labelled(metadata, lineage);
    return labelled == null ? null : new TreeSet<>(labelled.keySet());
  }
}
