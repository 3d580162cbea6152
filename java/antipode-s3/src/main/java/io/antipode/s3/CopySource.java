package io.antipode.s3;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.s3.model.CopyObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.MetadataDirective;

/** What a copy is made of, and keeps of that. */
final class CopySource {
  private static final String VERSION = "?versionId=";

  /** What an object may be copied onto itself for, besides its metadata. */
  private static final List<String> CHANGES =
      List.of(
          "BucketKeyEnabled",
          "SSECustomerAlgorithm",
          "SSEKMSKeyId",
          "ServerSideEncryption",
          "StorageClass",
          "WebsiteRedirectLocation");

  private CopySource() {}

  /** Returns whether a copy has metadata of its own. */
  static boolean isReplaced(CopyObjectRequest copy) {
    return copy.metadataDirective() == MetadataDirective.REPLACE;
  }

  /**
   * Returns whether a copy is of an object onto itself: refused, which metadata of ours would end.
   */
  static boolean changesNothing(CopyObjectRequest copy) {
    @Nullable Consumer<HeadObjectRequest.Builder> source = of(copy);
    return source != null
        && HeadObjectRequest.builder()
            .applyMutation(source)
            .build()
            .equals(
                HeadObjectRequest.builder()
                    .bucket(copy.destinationBucket())
                    .key(copy.destinationKey())
                    .build())
        && CHANGES.stream()
            .allMatch(change -> copy.getValueForField(change, Object.class).isEmpty());
  }

  /**
   * Returns what asks for the source of a copy; null where it names no bucket, such as by an ARN.
   */
  static @Nullable Consumer<HeadObjectRequest.Builder> of(CopyObjectRequest copy) {
    if (copy.sourceBucket() != null) {
      return asked(copy.sourceBucket(), copy.sourceKey(), copy.sourceVersionId());
    }
    // What the SDK makes of these three before its interceptors of others see it.
    @Nullable String text = copy.getValueForField("CopySource", String.class).orElse(null);
    if (text == null) {
      return null;
    }
    int question = text.indexOf(VERSION);
    String path =
        URLDecoder.decode(
            (question < 0 ? text : text.substring(0, question)).replace("+", "%2B"),
            StandardCharsets.UTF_8);
    int start = path.startsWith("/") ? 1 : 0;
    int slash = path.indexOf('/', start);
    return slash < 0
        ? null
        : asked(
            path.substring(start, slash),
            path.substring(slash + 1),
            question < 0 ? null : text.substring(question + VERSION.length()));
  }

  private static @Nullable Consumer<HeadObjectRequest.Builder> asked(
      String bucket, @Nullable String key, @Nullable String version) {
    return Place.of(bucket, key, "") == null
        ? null
        : asked -> asked.bucket(bucket).key(key).versionId(version);
  }

  /** Returns a copy that keeps what S3 keeps of a source, and says so itself. */
  static CopyObjectRequest kept(CopyObjectRequest copy, HeadObjectResponse source) {
    return copy.toBuilder()
        .metadataDirective(MetadataDirective.REPLACE)
        .metadata(source.metadata())
        .cacheControl(source.cacheControl())
        .contentDisposition(source.contentDisposition())
        .contentEncoding(source.contentEncoding())
        .contentLanguage(source.contentLanguage())
        .contentType(source.contentType())
        .expires(source.getValueForField("Expires", Instant.class).orElse(null))
        .build();
  }
}
