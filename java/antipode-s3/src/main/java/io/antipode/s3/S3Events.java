package io.antipode.s3;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lineages of notifications of buckets: each is the version that it reports. Nobody is asked. The
 * classes that hold a notification differ between libraries, so their fields are passed, or the
 * maps that a parser makes.
 */
public final class S3Events {
  private static final int MOST_SHOWN = 80;

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
    Objects.requireNonNull(eventName, "eventName");
    return lineage(datastore, Notification.sent(region, eventName, bucket, key, versionId));
  }

  /**
   * Returns what a notification depends on, as a parser of JSON makes it, or as a handler of AWS
   * Lambda gets it that takes a map.
   *
   * @param datastore the name that every service spells alike, of the bucket's objects
   * @param event what S3 sends to Lambda, SQS or SNS, with its {@code Records} or one of these; or
   *     what EventBridge delivers
   * @return the versions, as of {@link #lineage(String, String, String, String, String, String)};
   *     empty for the event that S3 sends as a test
   * @throws IllegalArgumentException if it is no event of S3, or names no object
   */
  public static Lineage lineage(String datastore, Map<?, ?> event) {
    if (!isEvent(event)) {
      String text = String.valueOf(event);
      throw new IllegalArgumentException(
          "it is no event of S3: " + text.substring(0, Math.min(text.length(), MOST_SHOWN)));
    }
    Lineage[] found =
        Notification.in(event).stream()
            .map(each -> lineage(datastore, each))
            .toArray(Lineage[]::new);
    return Lineage.empty().merge(found);
  }

  /** Returns whether something, as a parser of JSON makes it, is a notification of a bucket. */
  public static boolean isEvent(@Nullable Object event) {
    return Notification.isIn(event);
  }

  private static Lineage lineage(String datastore, Notification told) {
    Place place = Place.of(told.bucket(), told.key(), String.valueOf(told.region()));
    if (place == null || !place.equals(Place.parse(place.named()))) {
      throw new IllegalArgumentException(
          "an event of S3 that names no object: " + told.key() + " of " + told.bucket());
    }
    if (KillSwitch.isDisabled() || told.change() == Notification.Change.NEITHER) {
      return Lineage.empty();
    }
    String version = told.version();
    if (version == null
        || version.isEmpty()
        || version.equals(Place.NO_VERSION)
        || told.change() != Notification.Change.WRITTEN) {
      return Lineage.empty().marked(new Incomplete(datastore, "unsampled"));
    }
    return Lineage.of(WriteId.ofOpaque(datastore, place.named(), version).writtenAt(Time.hour()));
  }
}
