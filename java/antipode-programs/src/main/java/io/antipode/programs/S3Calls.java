package io.antipode.programs;

import io.antipode.barrier.ReadsFrom;
import io.antipode.s3.S3Shim;
import java.net.URI;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;

/** The client of S3. */
final class S3Calls implements Calls {
  private static final String BUCKET = "posts";

  private final S3Shim near;
  private final S3Shim far;
  private final S3AsyncClient writes;
  private final S3AsyncClient reads;
  private final S3Client plain;

  S3Calls(String url, String otherUrl) {
    near = S3Shim.builder("posts", Regions.home(S3Client.builder(), url)).bucket(BUCKET).register();
    far =
        S3Shim.builder("posts", Regions.away(S3Client.builder(), otherUrl))
            .bucket(BUCKET)
            .region(Regions.HOME, URI.create(url))
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    writes = near.instrument(Regions.home(S3AsyncClient.builder(), url));
    reads = far.instrument(Regions.away(S3AsyncClient.builder(), otherUrl));
    plain = Regions.away(S3Client.builder(), otherUrl).build();
  }

  private static String text(long number) {
    return Long.toString(number);
  }

  @Override
  public Made write(Random random, List<String> keys, long number) {
    String key = keys.get(random.nextInt(keys.size()));
    return random.nextInt(4) == 0
        ? new Made(
            "delete",
            writes.deleteObject(one -> one.bucket(BUCKET).key(key)),
            new Left(key, number, false))
        : new Made(
            "put",
            writes.putObject(
                one -> one.bucket(BUCKET).key(key), AsyncRequestBody.fromString(text(number))),
            new Left(key, number, true));
  }

  @Override
  public Made other(Random random, String key) {
    return switch (random.nextInt(3)) {
      case 0 ->
          new Made(
              "no bucket",
              writes.putObject(
                  one -> one.bucket("no-such").key(key), AsyncRequestBody.fromString("1")));
      case 1 -> new Made("head", writes.headObject(one -> one.bucket(BUCKET).key(key)));
      default -> new Made("list", writes.listObjectsV2(one -> one.bucket(BUCKET).maxKeys(3)));
    };
  }

  @Override
  public CompletableFuture<@Nullable Long> read(String key) {
    return reads
        .getObject(one -> one.bucket(BUCKET).key(key), AsyncResponseTransformer.toBytes())
        .handle(
            (found, error) -> {
              if (error == null) {
                return Long.valueOf(found.asUtf8String());
              }
              if (error instanceof NoSuchKeyException) {
                return null;
              }
              throw new CompletionException(error);
            });
  }

  @Override
  public @Nullable Long shown(String key) {
    try {
      return Long.valueOf(
          plain.getObjectAsBytes(one -> one.bucket(BUCKET).key(key)).asUtf8String());
    } catch (NoSuchKeyException missing) {
      return null;
    }
  }

  @Override
  public void close() {
    plain.close();
    reads.close();
    writes.close();
    far.close();
    near.close();
  }
}
