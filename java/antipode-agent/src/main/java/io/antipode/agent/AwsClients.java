package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URI;
import java.time.Duration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.regions.Region;

/** Clients of the AWS SDK, as an agent is told of them. */
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
}
