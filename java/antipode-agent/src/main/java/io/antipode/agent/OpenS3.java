package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.s3.S3Shim;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.s3.S3Client;

/** A shim of S3. */
final class OpenS3 implements OpenShim {
  static final String BUCKET = "posts";

  private final S3Shim shim;

  OpenS3(JsonNode given) {
    shim = builder(given).register();
  }

  static S3Shim.Builder builder(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    S3Shim.Builder builder =
        S3Shim.builder(Values.text(given, "datastore"), AwsClients.of(S3Client.builder(), given))
            .bucket(server.path("bucket").asText(BUCKET));
    for (Map.Entry<String, JsonNode> region : server.path("regions").properties()) {
      builder.region(region.getKey(), URI.create(region.getValue().asText()));
    }
    if (given.path("reads_from").asText().equals("replica")) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    return builder;
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    if (fulfils != null) {
      throw AgentException.unsupported("fulfils of s3");
    }
    return shim.write(
        key,
        value.getBytes(StandardCharsets.UTF_8),
        lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) {
    return shim.delete(key, lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Found read(String key) {
    return text(shim.read(key));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, OpenBytes.READING).thenApply(OpenS3::text);
  }

  private static Found text(S3Shim.Found found) {
    byte @Nullable [] value = found.value();
    return new Found(
        value == null ? null : new String(value, StandardCharsets.UTF_8), found.lineage());
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
