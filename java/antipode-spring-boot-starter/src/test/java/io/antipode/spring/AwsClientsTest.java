package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.antipode.aws.AwsShim;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Time;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;

/** Which clients of the AWS SDK the starter instruments. No server is asked. */
@Tag("slow")
class AwsClientsTest {
  @RegisterExtension private final Logged logged = new Logged();

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeAwsAutoConfiguration.class))
          .withUserConfiguration(Clients.class);

  private static <B extends AwsClientBuilder<B, ?>> B somewhere(B builder, Region region) {
    return builder
        .region(region)
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }

  private static <B extends AwsClientBuilder<B, ?>> B nowhere(B builder) {
    return somewhere(builder, Region.EU_WEST_1).endpointOverride(URI.create("http://127.0.0.1:1"));
  }

  @Configuration
  static class Clients {
    @Bean
    DynamoDbClient posts() {
      return nowhere(DynamoDbClient.builder()).build();
    }

    @Bean
    DynamoDbAsyncClient postsAsync() {
      return nowhere(DynamoDbAsyncClient.builder()).build();
    }

    @Bean
    S3Client media() {
      return somewhere(S3Client.builder(), Region.EU_WEST_1).build();
    }

    @Bean
    S3AsyncClient mediaElsewhere() {
      return somewhere(S3AsyncClient.builder(), Region.US_EAST_1).build();
    }

    @Bean
    SnsClient topics() {
      return somewhere(SnsClient.builder(), Region.EU_WEST_1).build();
    }

    @Bean
    SqsClient queues() {
      return somewhere(SqsClient.builder(), Region.EU_WEST_1).build();
    }

    @Bean
    SqsAsyncClient queuesAsync() {
      return somewhere(SqsAsyncClient.builder(), Region.EU_WEST_1).build();
    }
  }

  /** By the endpoint that a client was given, or by its region; and no others. */
  @Test
  void thoseWhoseAddressesRulesName() {
    application
        .withPropertyValues(
            "antipode.datastores=posts=dynamodb://localhost:1?reads_from=replica,"
                + "media=s3://eu-west-1, news=sns://eu-west-1")
        .run(
            context -> {
              for (String name :
                  new String[] {
                    "posts", "postsAsync", "media", "topics", "queues", "queuesAsync"
                  }) {
                assertThat(AwsShim.isInstrumented(context.getBean(name, AwsClient.class)))
                    .as(name)
                    .isTrue();
              }
              assertThat(AwsShim.isInstrumented(context.getBean("mediaElsewhere", AwsClient.class)))
                  .isFalse();
              assertThat(Shims.of("posts"))
                  .extracting(Shim::readsFrom)
                  .containsExactly(ReadsFrom.REPLICA);
              assertThat(Shims.of("news")).hasSize(1);
            });
    assertThat(logged.text())
        .contains("posts -> posts (replica)")
        .contains("queuesAsync -> news")
        .contains("not instrumented: mediaElsewhere (s3 at us-east-1:443)");
    assertThat(Shims.of("posts")).isEmpty();
  }

  /** A barrier asks the bucket that has the copies, and the region that took the write. */
  @Test
  void otherRegionsAndTheBucketsThatHaveTheirCopies() throws IOException {
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    List<String> asked = new CopyOnWriteArrayList<>();
    server.createContext(
        "/",
        exchange -> {
          asked.add(exchange.getRequestURI().getPath());
          exchange.getResponseHeaders().add("x-amz-version-id", "v1");
          // The copy comes once the writer's region was asked.
          exchange.sendResponseHeaders(asked.contains("/media-us/a") ? 200 : 404, -1);
          exchange.close();
        });
    server.start();
    String address = "127.0.0.1:" + server.getAddress().getPort();
    try {
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeAwsAutoConfiguration.class))
          .withBean(
              S3Client.class,
              () ->
                  somewhere(S3Client.builder(), Region.EU_WEST_1)
                      .endpointOverride(URI.create("http://" + address))
                      .forcePathStyle(true)
                      .build())
          .withPropertyValues(
              "antipode.datastores=media=s3://" + address + "?reads_from=replica",
              "antipode.s3.copies.media-us=media-eu",
              "antipode.s3.regions.us-east-1=http://" + address)
          .run(
              context -> {
                assertThat(context).hasSingleBean(S3Client.class);
                WriteId write =
                    WriteId.ofOpaque("media", "media-us/a@us-east-1", "v1").writtenAt(Time.hour());
                Barriers.barrier(
                    BarrierOptions.timeout(Duration.ofSeconds(20)).withLineage(Lineage.of(write)));
              });
    } finally {
      server.stop(0);
    }
    assertThat(asked).contains("/media-eu/a", "/media-us/a");
  }

  /** Without a rule every bean is as it was made. */
  @Test
  void noneWithoutARule() {
    application.run(
        context ->
            assertThat(AwsShim.isInstrumented(context.getBean("media", AwsClient.class)))
                .isFalse());
  }
}
