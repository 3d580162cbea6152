package io.antipode.s3;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lineages of notifications of buckets: each is the version that it reports. Nobody is asked. The
 * classes that hold a notification differ between libraries, so their fields are passed.
 */
public final class S3Events {
  /** Events of a write that has a version, by how their names begin. */
  private static final List<String> WRITTEN =
      List.of(
          "ObjectCreated:",
          "ObjectRemoved:DeleteMarkerCreated",
          "LifecycleExpiration:DeleteMarkerCreated");

  /** Events that change nothing that is read of an object. */
  private static final List<String> NEITHER =
      List.of("IntelligentTiering", "LifecycleTransition", "ObjectRestore:", "Replication:");

  private S3Events() {}

  /**
   * Returns what one record of a notification depends on.
   *
   * @param datastore the name that every service spells alike, of the bucket's objects
   * @param region {@code awsRegion} of the record
   * @param eventName its {@code eventName}
   * @param bucket its {@code s3.bucket.name}
   * @param key its {@code s3.object.key} as it is, encoded as in a URL
   * @param versionId its {@code s3.object.versionId}; null where it has none
   * @return the version; incomplete ({@code unsampled}) for what has none: a bucket without
   *     versioning, a version that was deleted for good, a tag
   * @throws IllegalArgumentException if it names no object
   */
  public static Lineage lineage(
      String datastore,
      String region,
      String eventName,
      String bucket,
      String key,
      @Nullable String versionId) {
    Place place = Place.of(bucket, URLDecoder.decode(key, StandardCharsets.UTF_8), region);
    if (place == null || !place.equals(Place.parse(place.named()))) {
      throw new IllegalArgumentException(
          "an event of S3 that names no object: " + key + " of " + bucket);
    }
    String name = Objects.requireNonNull(eventName, "eventName");
    String kind = name.startsWith("s3:") ? name.substring("s3:".length()) : name;
    if (KillSwitch.isDisabled() || NEITHER.stream().anyMatch(kind::startsWith)) {
      return Lineage.empty();
    }
    if (versionId == null
        || versionId.isEmpty()
        || versionId.equals(Place.NO_VERSION)
        || WRITTEN.stream().noneMatch(kind::startsWith)) {
      return Lineage.empty().marked(new Incomplete(datastore, "unsampled"));
    }
    return Lineage.of(WriteId.ofOpaque(datastore, place.named(), versionId).writtenAt(Time.hour()));
  }
}
