package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.s3.S3Shim;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.DeleteObjectRequest;
import software.amazon.awssdk.services.s3.model.DeleteObjectResponse;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;

/** Instrumented clients of the AWS SDK, one of each API: plain operations. */
final class OpenS3Client extends OpenClient {
  private final S3Shim shim;
  private final S3Client client;
  private final S3AsyncClient asynchronous;
  private final boolean isAsynchronous;

  /** Opens both; {@code library} says by which it writes, and reads unless it is said. */
  OpenS3Client(JsonNode given) {
    shim = OpenS3.builder(given).register();
    client = shim.instrument(AwsClients.of(S3Client.builder(), given));
    asynchronous = shim.instrument(AwsClients.of(S3AsyncClient.builder(), given));
    isAsynchronous = given.path("library").asText().equals("async");
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  void put(String key, String value) {
    PutObjectRequest put = PutObjectRequest.builder().bucket(OpenS3.BUCKET).key(key).build();
    PutObjectResponse unused =
        isAsynchronous
            ? asynchronous.putObject(put, AsyncRequestBody.fromString(value)).join()
            : client.putObject(put, RequestBody.fromString(value));
  }

  @Override
  void remove(String key) {
    DeleteObjectRequest delete =
        DeleteObjectRequest.builder().bucket(OpenS3.BUCKET).key(key).build();
    DeleteObjectResponse unused =
        isAsynchronous ? asynchronous.deleteObject(delete).join() : client.deleteObject(delete);
  }

  @Override
  @Nullable String get(String key) {
    if (isAsynchronous) {
      return readAsync(key).join().value();
    }
    try {
      return client.getObjectAsBytes(asked(key)).asUtf8String();
    } catch (NoSuchKeyException error) {
      return null;
    }
  }

  private static GetObjectRequest asked(String key) {
    return GetObjectRequest.builder().bucket(OpenS3.BUCKET).key(key).build();
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return asynchronous
        .getObject(asked(key), AsyncResponseTransformer.toBytes())
        .thenApply(got -> new Found(got.asUtf8String(), null))
        .exceptionally(OpenS3Client::absent);
  }

  private static Found absent(Throwable error) {
    Throwable cause = error instanceof CompletionException ? error.getCause() : error;
    if (cause instanceof NoSuchKeyException) {
      return new Found(null, null);
    }
    throw error instanceof CompletionException wrapped ? wrapped : new CompletionException(error);
  }

  @Override
  public void close() {
    client.close();
    asynchronous.close();
    shim.close();
  }
}
