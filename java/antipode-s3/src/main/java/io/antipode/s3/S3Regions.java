package io.antipode.s3;

import io.antipode.ConfigurationException;
import io.antipode.aws.Errors;
import io.antipode.aws.Homes;
import io.antipode.aws.Regions;
import io.antipode.barrier.Observation;
import io.antipode.lineage.WriteId;
import io.antipode.s3.Look.Question;
import java.net.URI;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.DeleteMarkerEntry;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ListBucketsResponse;
import software.amazon.awssdk.services.s3.model.ListObjectVersionsResponse;
import software.amazon.awssdk.services.s3.model.ObjectVersion;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * The clients by which regions are polled: one request for each version, and a listing where it is
 * not there. Thread-safe.
 */
final class S3Regions extends Regions<S3Client> {
  /** Requests at a time. */
  private static final int AT_ONCE = 10;

  /** Versions of one key that a listing shows: the newest comes first. */
  private static final int LISTED = 100;

  private static final int BAD_REQUEST = 400;
  private static final int FORBIDDEN = 403;
  private static final int NOT_FOUND = 404;
  private static final int METHOD_NOT_ALLOWED = 405;

  private final boolean isPathStyle;
  private final Map<String, String> buckets;
  private final Homes<Shown> homes = new Homes<>();
  private final ExecutorService asking =
      Executors.newFixedThreadPool(
          AT_ONCE,
          work -> {
            Thread thread = new Thread(work, "antipode-s3-poll");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * Takes what the application's client is configured with.
   *
   * @param others where further regions are, if not where AWS has them
   * @param buckets for buckets of other regions, the one here that has their copies
   */
  S3Regions(S3Client client, Map<String, URI> others, Map<String, String> buckets) {
    super(client.serviceClientConfiguration(), others);
    this.isPathStyle = S3Shim.isPathStyle(client.utilities());
    this.buckets = Map.copyOf(buckets);
  }

  @Override
  protected S3Client open(String region) {
    return connect(S3Client.builder().forcePathStyle(isPathStyle), region);
  }

  @Override
  protected Observation look(Collection<WriteId> writes) throws Exception {
    return Look.at(here(), writes, buckets, homes, this::ask);
  }

  private Map<Version, Shown> ask(Question question) throws InterruptedException {
    S3Client client = client(question.region());
    if (question.versions().isEmpty()) {
      answer(client);
    }
    Map<Version, @Nullable Shown> told = new HashMap<>();
    if (question.versions().size() == 1) {
      question.versions().forEach(each -> told.put(each, shown(client, each, question)));
    } else {
      Map<Version, Future<@Nullable Shown>> asked = new HashMap<>();
      for (Version each : question.versions()) {
        asked.put(each, asking.submit(() -> shown(client, each, question)));
      }
      for (Map.Entry<Version, Future<@Nullable Shown>> each : asked.entrySet()) {
        told.put(each.getKey(), joined(each.getValue()));
      }
    }
    told.values().removeIf(each -> each == null);
    return told;
  }

  private static @Nullable Shown joined(Future<@Nullable Shown> asked) throws InterruptedException {
    try {
      return asked.get();
    } catch (ExecutionException error) {
      throw error.getCause() instanceof RuntimeException cause
          ? cause
          : new IllegalStateException(error);
    }
  }

  /** Asks for the least that there is; that it is not allowed is an answer, too. */
  private static void answer(S3Client client) {
    try {
      ListBucketsResponse unused = client.listBuckets(asked -> asked.maxBuckets(1));
    } catch (S3Exception error) {
      RuntimeException unused = Errors.lasting(error);
    }
  }

  /** Returns what a region has of a version; null where it has no such bucket. */
  private static @Nullable Shown shown(S3Client client, Version version, Question question) {
    int status;
    try {
      HeadObjectResponse found =
          client.headObject(
              asked ->
                  asked.bucket(version.bucket()).key(version.key()).versionId(version.number()));
      String replication = found.replicationStatusAsString();
      return new Shown(
          !question.isOfCopies() || isRead(client, version),
          replication == null ? "" : replication,
          "");
    } catch (S3Exception error) {
      status = error.statusCode();
      if (status == METHOD_NOT_ALLOWED) { // A delete marker is there, and has no content.
        return new Shown(!question.isOfCopies() || isRead(client, version), "", "");
      }
      if (status != NOT_FOUND && status != BAD_REQUEST && status != FORBIDDEN) {
        throw error;
      }
    }
    // A reply without a body says no more than its status.
    if (!question.isWhole() && status == NOT_FOUND) {
      return Shown.ABSENT;
    }
    @Nullable String newest = newest(client, version);
    if (newest == null) {
      return null;
    }
    if (status == FORBIDDEN) {
      throw new ConfigurationException(
          "versions of '"
              + version.bucket()
              + "' may be listed but not read: grant s3:GetObjectVersion");
    }
    return new Shown(false, "", newest);
  }

  /**
   * Returns whether a read that names no version shows a copy, or a newer one. A copy may be there
   * before: SeaweedFS makes a version, and then has its key show it.
   */
  private static boolean isRead(S3Client client, Version version) {
    @Nullable String shown;
    try {
      shown =
          client.headObject(asked -> asked.bucket(version.bucket()).key(version.key())).versionId();
    } catch (S3Exception error) {
      if (error.statusCode() != NOT_FOUND) {
        throw error;
      }
      if (header(error, "x-amz-delete-marker").isEmpty()) {
        return false;
      }
      shown = header(error, "x-amz-version-id").orElseGet(() -> newest(client, version));
    }
    String from = shown == null ? Place.NO_VERSION : shown;
    if (from.equals(version.number())) {
      return true;
    }
    // Versions have no order but that of listings: from the newest on, here after the one shown.
    ListObjectVersionsResponse older =
        client.listObjectVersions(
            asked ->
                asked
                    .bucket(version.bucket())
                    .prefix(version.key())
                    .keyMarker(version.key())
                    .versionIdMarker(from));
    // So many versions may be after it that the listing ends within them.
    return version.key().equals(older.nextKeyMarker())
        || Stream.concat(
                older.versions().stream()
                    .filter(each -> each.key().equals(version.key()))
                    .map(ObjectVersion::versionId),
                older.deleteMarkers().stream()
                    .filter(each -> each.key().equals(version.key()))
                    .map(DeleteMarkerEntry::versionId))
            .anyMatch(version.number()::equals);
  }

  /** Returns the newest version of a key, or delete marker; null where there is no such bucket. */
  private static @Nullable String newest(S3Client client, Version version) {
    ListObjectVersionsResponse found;
    try {
      found =
          client.listObjectVersions(
              asked -> asked.bucket(version.bucket()).prefix(version.key()).maxKeys(LISTED));
    } catch (S3Exception error) {
      if (Errors.code(error).equals("NoSuchBucket")) {
        return null;
      }
      throw error;
    }
    return Stream.concat(
            found.versions().stream()
                .filter(each -> each.key().equals(version.key()) && each.isLatest())
                .map(ObjectVersion::versionId),
            found.deleteMarkers().stream()
                .filter(each -> each.key().equals(version.key()) && each.isLatest())
                .map(DeleteMarkerEntry::versionId))
        .findFirst()
        .orElse("");
  }

  private static Optional<String> header(S3Exception error, String name) {
    return error.awsErrorDetails() == null || error.awsErrorDetails().sdkHttpResponse() == null
        ? Optional.empty()
        : error.awsErrorDetails().sdkHttpResponse().firstMatchingHeader(name);
  }

  @Override
  public void close() {
    super.close();
    asking.shutdown();
  }
}
