package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.aws.RegionShim;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.regions.Region;

/** Clients of the AWS SDK and their regions, as an agent is told of them. */
final class AwsClients {
  private AwsClients() {}

  /** Configures a client, which tries once. */
  static <B extends AwsClientBuilder<B, ?>> B of(B builder, JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    Duration timeout =
        Configuration.duration(
            given.hasNonNull("timeout_s") ? given.get("timeout_s").asDouble() : 5);
    return builder
        .region(Region.of(Values.text(server, "region")))
        .endpointOverride(URI.create(Values.text(server, "url")))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")))
        .overrideConfiguration(
            options ->
                options.apiCallTimeout(timeout).retryStrategy(AwsRetryStrategy.doNotRetry()));
  }

  /** Returns a builder, with what is given of the shim. */
  static <B extends RegionShim.Builder<B, S>, S extends RegionShim> B described(
      B builder, JsonNode given) {
    JsonNode regions = Values.argument(given, "server").path("regions");
    for (Map.Entry<String, JsonNode> region : regions.properties()) {
      builder.region(region.getKey(), URI.create(region.getValue().asText()));
    }
    return OpenShim.reading(builder, given);
  }
}
