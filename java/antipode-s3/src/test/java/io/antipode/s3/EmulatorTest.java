package io.antipode.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.DependencyLostException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Status;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Time;
import io.antipode.s3.S3Shim.Found;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.DeleteObjectResponse;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;
import software.amazon.awssdk.transfer.s3.S3TransferManager;
import software.amazon.awssdk.transfer.s3.model.CompletedCopy;
import software.amazon.awssdk.transfer.s3.model.CompletedUpload;

/** Real clients over two regions of an emulator, not over AWS. */
@Tag("lab")
class EmulatorTest {
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final WriteId OTHER = WriteId.of("else", "log", 7).writtenAt(Time.hour());
  private static final int LAG_MS = 50;
  private static final int PART = 5 * 1_024 * 1_024;

  private static Lab lab;

  private final String key = "folder/" + UUID.randomUUID();
  private S3Shim near;
  private S3Shim far;

  @BeforeAll
  static void start() throws IOException {
    lab = Lab.start("s3", LAG_MS);
  }

  @AfterAll
  static void stop() throws IOException {
    lab.close();
  }

  @BeforeEach
  void register() {
    near =
        S3Shim.builder("posts", here(S3Client.builder()))
            .bucket("posts")
            .storingLineages()
            .register();
    far =
        S3Shim.builder("posts", client(S3Client.builder(), "eu-west-1", lab.otherUrl()))
            .bucket("posts")
            .region("us-east-1", URI.create(lab.url()))
            .readsFrom(ReadsFrom.REPLICA)
            .register();
  }

  @AfterEach
  void close() {
    near.close();
    far.close();
  }

  private static <B extends AwsClientBuilder<B, ?>> B here(B builder) {
    return client(builder, "us-east-1", lab.url());
  }

  private static <B extends AwsClientBuilder<B, ?>> B client(B builder, String region, String url) {
    return builder
        .region(Region.of(region))
        .endpointOverride(URI.create(url))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }

  /** What a test writes depends on something else, which its readers must learn. */
  private static ScopeBlock request() {
    return Antipode.scope(Lineage.of(OTHER));
  }

  /** Returns what the far region has, once it must have it. */
  private Found arrived(String name) {
    assertThat(Antipode.current().incomplete()).isEmpty();
    assertThat(Antipode.current().only("posts").writes())
        .extracting(WriteId::key)
        .contains("posts/" + name + "@us-east-1");
    Barriers.barrier(BarrierOptions.timeout(SOON).withLineage(Antipode.current().only("posts")));
    try (ScopeBlock reading = Antipode.scope()) {
      return far.read(name);
    }
  }

  /** An upload in parts is written when it is complete, and has the lineage of its beginning. */
  @Test
  void anUploadInPartsIsWaitedFor() {
    try (S3Client client = near.instrument(here(S3Client.builder()));
        ScopeBlock scope = request()) {
      String upload =
          client.createMultipartUpload(begin -> begin.bucket("posts").key(key)).uploadId();
      assertThat(Antipode.current().only("posts").isEmpty()).isTrue();
      String part =
          client
              .uploadPart(
                  one -> one.bucket("posts").key(key).uploadId(upload).partNumber(1),
                  RequestBody.fromString("1"))
              .eTag();
      assertThat(
              client
                  .completeMultipartUpload(
                      all ->
                          all.bucket("posts")
                              .key(key)
                              .uploadId(upload)
                              .multipartUpload(
                                  parts ->
                                      parts.parts(
                                          CompletedPart.builder()
                                              .partNumber(1)
                                              .eTag(part)
                                              .build())))
                  .versionId())
          .isNotNull();
      Found found = arrived(key);
      assertThat(found.value()).asString().isEqualTo("1");
      assertThat(found.lineage().writes()).contains(OTHER);
    }
  }

  /** A copy brings the lineage of its source, and keeps what else S3 keeps. */
  @Test
  void aCopyIsWaitedFor() {
    String copy = key + "+copy of it";
    try (S3Client client = near.instrument(here(S3Client.builder()))) {
      try (ScopeBlock scope = request()) {
        PutObjectResponse unused =
            client.putObject(
                put ->
                    put.bucket("posts").key(key).contentType("text/x").metadata(Map.of("m", "1")),
                RequestBody.fromString("1"));
      }
      try (ScopeBlock scope = Antipode.scope()) {
        assertThat(
                client
                    .copyObject(
                        one ->
                            one.sourceBucket("posts")
                                .sourceKey(key)
                                .destinationBucket("posts")
                                .destinationKey(copy))
                    .versionId())
            .isNotNull();
        assertThat(arrived(copy).lineage().writes()).contains(OTHER);
        var head = client.headObject(one -> one.bucket("posts").key(copy));
        assertThat(head.contentType()).isEqualTo("text/x");
        assertThat(head.metadata()).isEqualTo(Map.of("m", "1"));
      }
    }
  }

  /** A delete marker is waited for as an object is. */
  @Test
  void aDeletionIsWaitedFor() {
    try (S3Client client = near.instrument(here(S3Client.builder()));
        ScopeBlock scope = Antipode.scope()) {
      PutObjectResponse unused =
          client.putObject(put -> put.bucket("posts").key(key), RequestBody.fromString("1"));
      DeleteObjectResponse deleted = client.deleteObject(one -> one.bucket("posts").key(key));
      assertThat(deleted.deleteMarker()).isTrue();
      assertThat(arrived(key).value()).isNull();
    }
  }

  /** The manager, and the parts that the client makes, work in threads of the SDK's. */
  @Test
  void transfersAreOfTheRequestThatStartedThem() {
    String copy = key + "-copy";
    byte[] large = new byte[2 * PART];
    try (S3AsyncClient client =
            near.instrument(
                here(S3AsyncClient.builder())
                    .multipartEnabled(true)
                    .multipartConfiguration(
                        parts ->
                            parts
                                .thresholdInBytes((long) PART)
                                .minimumPartSizeInBytes((long) PART)));
        S3TransferManager manager = S3TransferManager.builder().s3Client(client).build()) {
      try (ScopeBlock scope = request()) {
        CompletedUpload done =
            manager
                .upload(
                    one ->
                        one.putObjectRequest(put -> put.bucket("posts").key(key))
                            .requestBody(AsyncRequestBody.fromBytes(large)))
                .completionFuture()
                .join();
        Found found = arrived(key);
        assertThat(found.value()).hasSize(large.length);
        assertThat(found.lineage().writes())
            .contains(OTHER)
            .extracting(WriteId::opaqueVersion)
            .contains(done.response().versionId());
      }
      try (ScopeBlock scope = Antipode.scope()) {
        CompletedCopy done =
            manager
                .copy(
                    one ->
                        one.copyObjectRequest(
                            from ->
                                from.sourceBucket("posts")
                                    .sourceKey(key)
                                    .destinationBucket("posts")
                                    .destinationKey(copy)))
                .completionFuture()
                .join();
        Found found = arrived(copy);
        assertThat(found.value()).hasSize(large.length);
        assertThat(found.lineage().writes())
            .contains(OTHER)
            .extracting(WriteId::opaqueVersion)
            .contains(done.response().versionId());
      }
    }
  }

  /** A version that is gone for good at its source was overwritten, or is lost. */
  @Test
  void aVersionThatEndedIsNotWaitedForAsIfItCame() {
    try (S3Client plain = here(S3Client.builder()).build();
        ScopeBlock scope = Antipode.scope()) {
      Lineage first = near.write(key, new byte[] {1});
      WriteId write = first.only("posts").writes().get(0);
      plain.deleteObject(one -> one.bucket("posts").key(key).versionId(write.opaqueVersion()));
      assertThatThrownBy(() -> near.await(first, SOON)).isInstanceOf(DependencyLostException.class);
      Lineage next = near.write(key, new byte[] {2});
      assertThat(near.await(first.merge(next), SOON).outcomes())
          .extracting(each -> each.status())
          .containsExactlyInAnyOrder(Status.SUPERSEDED, Status.VISIBLE);
    }
  }
}
