package io.antipode.s3;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What the key of a write names.
 *
 * @param bucket which took it
 * @param key of the object
 * @param region of the bucket, as the writer's client named it
 */
record Place(String bucket, String key, String region) {
  /** The version of an object that a bucket took without versioning. */
  static final String NO_VERSION = "null";

  private static final Pattern BUCKET = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]+");
  private static final Pattern REGION = Pattern.compile("[a-z0-9-]+");

  /** Returns the object of a request; null where it names no bucket, such as by an ARN. */
  static @Nullable Place of(@Nullable String bucket, @Nullable String key, String region) {
    return bucket == null || !BUCKET.matcher(bucket).matches() || key == null || key.isEmpty()
        ? null
        : new Place(bucket, key, region);
  }

  /** Returns the object of a write's key; null where it names none. */
  static @Nullable Place parse(String text) {
    int at = text.lastIndexOf('@');
    int slash = text.indexOf('/');
    if (slash < 0 || at < slash) {
      return null;
    }
    String region = text.substring(at + 1);
    return REGION.matcher(region).matches()
        ? of(text.substring(0, slash), text.substring(slash + 1, at), region)
        : null;
  }

  /** Returns its name in a lineage. */
  String named() {
    return bucket + "/" + key + "@" + region;
  }
}
