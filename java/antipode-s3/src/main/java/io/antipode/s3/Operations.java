package io.antipode.s3;

import io.antipode.aws.Kind;
import java.util.Set;

/** Which operations of the API read, write, or do neither. */
final class Operations {
  /** Each by the version that it makes. */
  private static final Set<String> WRITES =
      words("CompleteMultipartUpload CopyObject DeleteObject DeleteObjects PutObject");

  private static final Set<String> READS =
      words(
          """
          GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
          GetObjectTagging GetObjectTorrent HeadObject ListObjectVersions ListObjects ListObjectsV2
          SelectObjectContent
          """);

  /** Neither read nor write objects, whatever their names begin with. */
  private static final Set<String> NEUTRAL =
      words(
          """
          AbortMultipartUpload CreateBucket CreateMultipartUpload CreateSession ListMultipartUploads
          ListParts UploadPart UploadPartCopy
          """);

  /** How the operations on buckets begin. */
  private static final Set<String> ABOUT = words("Get Put Delete List Head Create Update");

  private Operations() {}

  private static Set<String> words(String text) {
    return Set.of(text.strip().split("\\s+"));
  }

  /**
   * Returns what an operation does.
   *
   * @param isOfVersion whether it names the version of an object
   */
  static Kind kind(String operation, boolean isOfVersion) {
    if (READS.contains(operation)) {
      return Kind.READ;
    }
    if (WRITES.contains(operation)) {
      // What ends a version for good is never copied to another region.
      return operation.equals("DeleteObject") && isOfVersion ? Kind.UNKNOWN : Kind.WRITE;
    }
    boolean isOfBucket =
        !operation.contains("Object") && ABOUT.stream().anyMatch(operation::startsWith);
    // What is left changes an object without a new version, or is not known: nobody can wait for
    // it.
    return NEUTRAL.contains(operation) || isOfBucket ? Kind.NEITHER : Kind.UNKNOWN;
  }
}
