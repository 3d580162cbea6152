package io.antipode.s3;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What one record of a notification says, as S3 sends it or as EventBridge does.
 *
 * @param region of the bucket
 * @param bucket its name
 * @param key of the object, as it is
 * @param change what happened
 * @param version which it has since; null for none
 */
record Notification(
    @Nullable String region,
    @Nullable String bucket,
    @Nullable String key,
    Change change,
    @Nullable String version) {
  /** What happened to an object. */
  enum Change {
    /** It has a further version. */
    WRITTEN,
    /** Nothing that is read of it changed. */
    NEITHER,
    /** Something changed that has no version, or nobody knows what. */
    OTHER
  }

  /** Events of a write that has a version, by how their names begin. */
  private static final List<String> WRITTEN =
      List.of(
          "ObjectCreated:",
          "ObjectRemoved:DeleteMarkerCreated",
          "LifecycleExpiration:DeleteMarkerCreated");

  /** Events that change nothing that is read of an object. */
  private static final List<String> NEITHER =
      List.of("IntelligentTiering", "LifecycleTransition", "ObjectRestore:", "Replication:");

  /** How EventBridge calls these. */
  private static final Set<String> BRIDGED_NEITHER =
      Set.of(
          "Object Access Tier Changed",
          "Object Restore Completed",
          "Object Restore Expired",
          "Object Restore Initiated",
          "Object Storage Class Changed");

  /** Returns the record of S3's own fields; the key is encoded as in a URL. */
  static Notification sent(
      @Nullable String region,
      String eventName,
      @Nullable String bucket,
      @Nullable String key,
      @Nullable String version) {
    String kind = eventName.startsWith("s3:") ? eventName.substring("s3:".length()) : eventName;
    Change change =
        NEITHER.stream().anyMatch(kind::startsWith)
            ? Change.NEITHER
            : WRITTEN.stream().anyMatch(kind::startsWith) ? Change.WRITTEN : Change.OTHER;
    String decoded = key == null ? null : URLDecoder.decode(key, StandardCharsets.UTF_8);
    return new Notification(region, bucket, decoded, change, version);
  }

  private static Notification bridged(Map<?, ?> record, Map<?, ?> detail) {
    String kind = String.valueOf(record.get("detail-type"));
    boolean isWrite =
        kind.equals("Object Created")
            || (kind.equals("Object Deleted")
                && "Delete Marker Created".equals(detail.get("deletion-type")));
    Change change =
        BRIDGED_NEITHER.contains(kind) ? Change.NEITHER : isWrite ? Change.WRITTEN : Change.OTHER;
    Map<?, ?> made = map(detail.get("object"));
    return new Notification(
        text(record.get("region")),
        text(map(detail.get("bucket")).get("name")),
        text(made.get("key")),
        change,
        text(made.get("version-id")));
  }

  private static Notification of(Map<?, ?> record) {
    if (record.get("detail") instanceof Map<?, ?> detail) {
      return bridged(record, detail);
    }
    Map<?, ?> held = map(record.get("s3"));
    Map<?, ?> made = map(held.get("object"));
    return sent(
        text(record.get("awsRegion")),
        String.valueOf(record.get("eventName")),
        text(map(held.get("bucket")).get("name")),
        text(made.get("key")),
        text(made.get("versionId")));
  }

  // Of parsed JSON, of which anybody may be the author.

  /** Returns whether something is an event of S3, or one of its records. */
  static boolean isIn(@Nullable Object event) {
    if (!(event instanceof Map<?, ?> map)) {
      return false;
    }
    return map.get("Records") instanceof Collection<?> records
        ? !records.isEmpty() && records.stream().allMatch(Notification::isRecord)
        : isRecord(map) || isTest(map);
  }

  /** Returns the records of an event of S3; none of the one that S3 sends as a test. */
  static List<Notification> in(Map<?, ?> event) {
    return event.get("Records") instanceof Collection<?> records
        ? records.stream().map(each -> of(map(each))).toList()
        : isTest(event) ? List.of() : List.of(of(event));
  }

  private static boolean isRecord(@Nullable Object each) {
    if (!(each instanceof Map<?, ?> record)) {
      return false;
    }
    return "aws.s3".equals(record.get("source"))
        ? record.get("detail") instanceof Map<?, ?>
        : String.valueOf(record.get("eventSource")).endsWith(":s3")
            && record.get("s3") instanceof Map<?, ?>;
  }

  private static boolean isTest(Map<?, ?> event) {
    return "s3:TestEvent".equals(event.get("Event"));
  }

  private static Map<?, ?> map(@Nullable Object held) {
    return held instanceof Map<?, ?> map ? map : Map.of();
  }

  private static @Nullable String text(@Nullable Object held) {
    return held instanceof String text ? text : null;
  }
}
