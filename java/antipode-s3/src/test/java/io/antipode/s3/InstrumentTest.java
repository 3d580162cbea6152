package io.antipode.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.aws.AwsShim;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Counts.Metric;
import io.antipode.runtime.Time;
import io.antipode.s3.PlainServer.Answer;
import io.antipode.s3.PlainServer.Received;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import org.assertj.core.groups.Tuple;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CopyObjectResponse;
import software.amazon.awssdk.services.s3.model.DeleteObjectsResponse;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.StorageClass;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/** Clients of the SDK, instrumented, before a server that answers as each test says. */
class InstrumentTest {
  private static final Incomplete IN_DOUBT = new Incomplete("posts", "in_doubt");
  private static final Incomplete UNSAMPLED = new Incomplete("posts", "unsampled");
  private static final Incomplete SIZE = new Incomplete("posts", "size");
  private static final WriteId OTHER = WriteId.of("else", "log", 7).writtenAt(Time.hour());
  private static final String OTHER_TEXT = LineageText.stored(Lineage.of(OTHER));

  private static S3Shim.Builder shim(PlainServer server) {
    return S3Shim.builder("posts", server.client(S3Client.builder()));
  }

  /** What a test does with a client. */
  private interface Use {
    void by(S3Client client) throws Exception;
  }

  /** Returns the lineage of a request that uses a client of a shim. */
  private static Lineage after(PlainServer server, S3Shim.Builder builder, Lineage given, Use use)
      throws Exception {
    try (S3Shim shim = builder.register();
        S3Client client = shim.instrument(server.client(S3Client.builder()));
        ScopeBlock scope = Antipode.scope(given)) {
      use.by(client);
      return Antipode.current();
    }
  }

  private static void put(S3Client client, Map<String, String> metadata) {
    PutObjectResponse unused =
        client.putObject(
            put -> put.bucket("posts").key("a").metadata(metadata), RequestBody.fromString("1"));
  }

  private static Lineage after(PlainServer server, Use use) throws Exception {
    return after(server, shim(server), Lineage.empty(), use);
  }

  /** One request, whose reply has the version. */
  @Test
  void aPutIsRecordedByItsVersion() throws Exception {
    try (PlainServer server = new PlainServer(Answer.version("v1"))) {
      Lineage lineage = after(server, client -> put(client, Map.of()));
      assertThat(lineage.writes())
          .extracting(WriteId::key, WriteId::opaqueVersion)
          .containsExactly(Tuple.tuple("posts/a@us-east-1", "v1"));
      assertThat(server.all()).hasSize(1);
    }
  }

  /** Nobody can wait for what a bucket without versioning took. */
  @Test
  void aPutWithoutAVersionIsMarked() throws Exception {
    try (PlainServer server = new PlainServer(new Answer(200, Map.of(), ""))) {
      assertThat(after(server, client -> put(client, Map.of())).incomplete())
          .containsExactly(UNSAMPLED);
    }
  }

  /** Only where it is asked for does a client store what its request depends on. */
  @Test
  void aLineageIsStoredInTheMetadataAndHidden() throws Exception {
    try (PlainServer server =
        new PlainServer(
            Answer.version("v1"),
            new Answer(
                200,
                Map.of(
                    "x-amz-version-id", "v1",
                    "x-amz-meta-antipode", OTHER_TEXT,
                    "x-amz-meta-m", "mine"),
                "1"))) {
      Lineage written =
          after(
              server,
              shim(server).storingLineages(),
              Lineage.of(OTHER),
              client -> put(client, Map.of("m", "mine")));
      assertThat(written.only("posts").writes()).hasSize(1);
      assertThat(server.all().get(0).label()).isEqualTo(OTHER_TEXT);
      Lineage read =
          after(
              server,
              shim(server).storingLineages(),
              Lineage.empty(),
              client ->
                  assertThat(
                          client
                              .getObjectAsBytes(get -> get.bucket("posts").key("a"))
                              .response()
                              .metadata())
                      .isEqualTo(Map.of("m", "mine")));
      assertThat(read.writes()).contains(OTHER).hasSize(2);
    }
  }

  /** An object without room goes as it is; what its readers will not learn is marked. */
  @Test
  void metadataWithoutRoomIsMarked() throws Exception {
    try (PlainServer server = new PlainServer(Answer.version("v1"))) {
      Lineage lineage =
          after(
              server,
              shim(server).storingLineages(),
              Lineage.of(OTHER),
              client -> put(client, Map.of("m", "x".repeat(2_047))));
      assertThat(server.all().get(0).label()).isNull();
      assertThat(lineage.incomplete()).containsExactly(SIZE);
      assertThat(lineage.only("posts").writes()).hasSize(1);
    }
  }

  /** A copy has the metadata of its source, with what its own request depends on. */
  @Test
  void aCopyBringsTheLineageOfItsSource() throws Exception {
    String copied = "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>";
    try (PlainServer server =
        new PlainServer(
            new Answer(
                200, Map.of("x-amz-version-id", "v0", "x-amz-meta-antipode", OTHER_TEXT), ""),
            new Answer(200, Map.of("x-amz-version-id", "v1"), copied))) {
      Lineage lineage =
          after(
              server,
              shim(server).storingLineages(),
              Lineage.empty(),
              client ->
                  client.copyObject(
                      copy ->
                          copy.sourceBucket("posts")
                              .sourceKey("a b")
                              .destinationBucket("posts")
                              .destinationKey("c")));
      assertThat(server.all().get(0)).isEqualTo(new Received("HEAD", "/posts/a%20b", null));
      assertThat(server.all().get(1).label()).isEqualTo(OTHER_TEXT);
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/c@us-east-1");
    }
  }

  /** AWS refuses a copy onto itself that changes nothing: a lineage must not be what it changes. */
  @Test
  void aCopyThatChangesNothingGoesAsItIs() throws Exception {
    String copied = "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>";
    try (PlainServer server =
        new PlainServer(
            Answer.refused(400, "InvalidRequest"),
            Answer.version("v0"),
            new Answer(200, Map.of("x-amz-version-id", "v1"), copied))) {
      Lineage lineage =
          after(
              server,
              shim(server).storingLineages(),
              Lineage.of(OTHER),
              client -> {
                assertThatThrownBy(() -> copyOntoItself(client, null))
                    .isInstanceOf(S3Exception.class);
                copyOntoItself(client, StorageClass.STANDARD);
              });
      assertThat(server.all()).extracting(Received::method).containsExactly("PUT", "HEAD", "PUT");
      assertThat(server.all()).extracting(Received::label).containsExactly(null, null, OTHER_TEXT);
      assertThat(lineage.only("posts").writes()).hasSize(1);
    }
  }

  private static void copyOntoItself(S3Client client, @Nullable StorageClass kept) {
    CopyObjectResponse unused =
        client.copyObject(
            copy ->
                copy.sourceBucket("posts")
                    .sourceKey("a b")
                    .destinationBucket("posts")
                    .destinationKey("a b")
                    .storageClass(kept));
  }

  /** Each marker is a write; what ended for good, or was never versioned, is marked. */
  @Test
  void deletionsAreRecordedByTheirMarkers() throws Exception {
    String deleted =
        "<DeleteResult><Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker>"
            + "<DeleteMarkerVersionId>m1</DeleteMarkerVersionId></Deleted>"
            + "<Deleted><Key>b</Key><VersionId>v1</VersionId></Deleted></DeleteResult>";
    try (PlainServer server = new PlainServer(new Answer(200, Map.of(), deleted))) {
      Lineage lineage =
          after(
              server,
              client -> {
                DeleteObjectsResponse reply =
                    client.deleteObjects(
                        several ->
                            several
                                .bucket("posts")
                                .delete(
                                    one ->
                                        one.quiet(true)
                                            .objects(ObjectIdentifier.builder().key("a").build())));
                assertThat(reply.hasDeleted()).isFalse();
              });
      assertThat(lineage.writes()).extracting(WriteId::opaqueVersion).containsExactly("m1");
      assertThat(lineage.incomplete()).containsExactly(UNSAMPLED);
    }
  }

  /** No other region learns that a version ended for good. */
  @Test
  void theEndOfAVersionIsMarked() throws Exception {
    try (PlainServer server = new PlainServer(Answer.version("v1"))) {
      Lineage lineage =
          after(
              server,
              client -> client.deleteObject(one -> one.bucket("posts").key("a").versionId("v1")));
      assertThat(lineage.incomplete()).containsExactly(UNSAMPLED);
      assertThat(lineage.writes()).isEmpty();
    }
  }

  /** An attempt before the last may have been done. */
  @Test
  void anAttemptThatFailedAtTheServiceLeavesDoubt() throws Exception {
    try (PlainServer server =
        new PlainServer(
            Answer.refused(500, "InternalError"), Answer.refused(412, "PreconditionFailed"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(() -> put(client, Map.of())).isInstanceOf(S3Exception.class));
      assertThat(server.all()).hasSize(2);
      assertThat(lineage.incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /** A condition that does not hold wrote nothing. */
  @Test
  void aRefusalLeavesNoDoubt() throws Exception {
    try (PlainServer server = new PlainServer(Answer.refused(412, "PreconditionFailed"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(() -> put(client, Map.of())).isInstanceOf(S3Exception.class));
      assertThat(lineage.isEmpty()).isTrue();
    }
  }

  /** An error that comes with status 200 says nothing of what was done. */
  @Test
  void anErrorInAReplyOfSuccessLeavesDoubt() throws Exception {
    try (PlainServer server = new PlainServer(Answer.refused(200, "InternalError"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(
                          () ->
                              client.copyObject(
                                  copy ->
                                      copy.sourceBucket("posts")
                                          .sourceKey("a")
                                          .destinationBucket("posts")
                                          .destinationKey("c")))
                      .isInstanceOf(S3Exception.class));
      assertThat(lineage.incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /** The SDK reports to no interceptor that a future was cancelled. */
  @Test
  void aCancelledWriteIsInDoubt() throws Exception {
    try (PlainServer server = new PlainServer(Answer.NONE);
        S3Shim shim = shim(server).register();
        S3AsyncClient client = shim.instrument(server.client(S3AsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      var put =
          client.putObject(one -> one.bucket("posts").key("a"), AsyncRequestBody.fromString("1"));
      assertThat(server.next().method()).isEqualTo("PUT");
      assertThat(Antipode.current().isEmpty()).isTrue();
      put.cancel(true);
      assertThat(Antipode.current().incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /** The version, and then what a read shows, before the read itself. */
  @Test
  void aReadIsHeldBackUntilItsCopyIsRead() throws Exception {
    WriteId written = WriteId.ofOpaque("posts", "posts/a@eu-west-1", "v1");
    try (PlainServer server =
            new PlainServer(
                new Answer(404, Map.of(), ""),
                Answer.version("v1"),
                Answer.version("v1"),
                new Answer(200, Map.of("x-amz-version-id", "v1"), "1"));
        S3Shim shim = shim(server).readsFrom(ReadsFrom.REPLICA).register();
        S3AsyncClient client = shim.instrument(server.client(S3AsyncClient.builder()));
        ScopeBlock scope = Antipode.scope(Lineage.of(written))) {
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)).atRead());
      var got =
          client.getObject(one -> one.bucket("posts").key("a"), AsyncResponseTransformer.toBytes());
      assertThat(got.join().asUtf8String()).isEqualTo("1");
      assertThat(server.all())
          .containsSubsequence(
              new Received("HEAD", "/posts/a?versionId=v1", null),
              new Received("HEAD", "/posts/a?versionId=v1", null),
              new Received("HEAD", "/posts/a", null))
          .endsWith(new Received("GET", "/posts/a", null));
    }
  }

  /** Somebody else makes the call, some time. */
  @Test
  void aSignatureIsCounted() throws Exception {
    try (PlainServer server = new PlainServer(Answer.version("v1"));
        S3Shim shim = shim(server).register();
        S3Presigner presigner =
            shim.instrument(
                S3Presigner.builder()
                    .region(Region.US_EAST_1)
                    .endpointOverride(URI.create("http://127.0.0.1:1"))
                    .credentialsProvider(
                        StaticCredentialsProvider.create(AwsBasicCredentials.create("a", "b")))
                    .build());
        ScopeBlock scope = Antipode.scope()) {
      Metric presigned = new Metric("presigned", "posts");
      long before = Counts.all().getOrDefault(presigned, 0L);
      assertThat(
              presigner
                  .presignPutObject(
                      signed ->
                          signed
                              .signatureDuration(Duration.ofMinutes(1))
                              .putObjectRequest(put -> put.bucket("posts").key("a")))
                  .url())
          .hasPath("/posts/a");
      assertThat(Counts.all()).containsEntry(presigned, before + 1);
      assertThat(Antipode.current().isEmpty()).isTrue();
    }
  }

  /** A bean that a framework made is covered as one that the shim made, and once only. */
  @Test
  void aClientThatWasMadeBeforeIsCovered() throws Exception {
    try (PlainServer server =
            new PlainServer(
                Answer.version("v1"),
                Answer.refused(500, "InternalError"),
                Answer.refused(412, "PreconditionFailed"),
                Answer.version("v2"));
        S3Shim shim = shim(server).register();
        S3Client made = server.client(S3Client.builder()).build();
        S3AsyncClient async = server.client(S3AsyncClient.builder()).build();
        ScopeBlock scope = Antipode.scope()) {
      S3Client client = shim.instrument(made);
      put(client, Map.of());
      assertThat(Antipode.current().writes())
          .extracting(WriteId::opaqueVersion)
          .containsExactly("v1");
      assertThatThrownBy(() -> put(client, Map.of())).isInstanceOf(S3Exception.class);
      assertThat(Antipode.current().incomplete()).containsExactly(IN_DOUBT);
      PutObjectResponse unused =
          shim.instrument(async)
              .putObject(one -> one.bucket("posts").key("b"), AsyncRequestBody.fromString("1"))
              .join();
      assertThat(Antipode.current().writes())
          .extracting(WriteId::opaqueVersion)
          .containsExactlyInAnyOrder("v1", "v2");
      assertThat(AwsShim.isInstrumented(made)).isFalse();
      assertThat(AwsShim.isInstrumented(client)).isTrue();
      assertThat(AwsShim.isInstrumented(shim.instrument(async))).isTrue();
      try (S3Client ours = shim.instrument(server.client(S3Client.builder()))) {
        assertThat(AwsShim.isInstrumented(ours)).isTrue();
      }
    }
  }

  /** What is written elsewhere would be named after the wrong region. */
  @Test
  void aClientOfAnotherRegionIsRefused() throws IOException {
    try (PlainServer server = new PlainServer(Answer.version("v1"));
        S3Shim shim = shim(server).register()) {
      var other = server.client(S3Client.builder()).region(Region.EU_WEST_1);
      assertThatThrownBy(() -> shim.instrument(other))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("a shim for each region");
    }
  }
}
