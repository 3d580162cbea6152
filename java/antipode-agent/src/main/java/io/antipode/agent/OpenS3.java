package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.s3.S3Shim;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.s3.S3Client;

/** A shim of S3. */
final class OpenS3 extends OpenBytes {
  static final String BUCKET = "posts";

  private final S3Shim shim;

  OpenS3(JsonNode given) {
    shim = builder(given).register();
  }

  static S3Shim.Builder builder(JsonNode given) {
    return AwsClients.described(
        S3Shim.builder(Values.text(given, "datastore"), AwsClients.of(S3Client.builder(), given))
            .bucket(Values.argument(given, "server").path("bucket").asText(BUCKET)),
        given);
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils) {
    if (fulfils != null) {
      throw AgentException.unsupported("fulfils of s3");
    }
    return shim.write(key, value, lineage);
  }

  @Override
  Lineage remove(String key, Lineage lineage) {
    return shim.delete(key, lineage);
  }

  @Override
  public Found read(String key) {
    S3Shim.Found found = shim.read(key);
    return found(found.value(), found.lineage());
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(each -> found(each.value(), each.lineage()));
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }

  @Override
  public void close() {
    shim.close();
  }
}
