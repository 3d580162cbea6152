package io.antipode.programs;

import java.net.URI;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;

/** Where the emulators of AWS's services are. */
final class Regions {
  static final String HOME = "us-east-1";
  static final String AWAY = "eu-west-1";

  private Regions() {}

  /** Returns a builder of clients of the region in which programs write. */
  static <B extends AwsClientBuilder<B, ?>> B home(B builder, String url) {
    return at(builder, HOME, url);
  }

  /** Returns a builder of clients of the region in which they read. */
  static <B extends AwsClientBuilder<B, ?>> B away(B builder, String url) {
    return at(builder, AWAY, url);
  }

  private static <B extends AwsClientBuilder<B, ?>> B at(B builder, String region, String url) {
    return builder
        .region(Region.of(region))
        .endpointOverride(URI.create(url))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }
}
