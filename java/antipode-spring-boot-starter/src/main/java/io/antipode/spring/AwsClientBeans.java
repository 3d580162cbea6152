package io.antipode.spring;

import io.antipode.aws.AwsShim;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.ShimBuilder;
import io.antipode.dynamodb.DynamoDbShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.s3.S3Shim;
import io.antipode.sns.SnsShim;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.net.URI;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.util.ClassUtils;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.AwsServiceClientConfiguration;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3Utilities;
import software.amazon.awssdk.services.sns.SnsAsyncClient;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;

/**
 * Puts an instrumented client in the place of each bean of the AWS SDK whose region or endpoint a
 * rule names. Shims are closed with the application.
 */
final class AwsClientBeans implements BeanPostProcessor, DisposableBean {
  private static final int HTTP = 80;
  private static final int HTTPS = 443;

  private static final boolean HAS_DYNAMODB = isPresent("io.antipode.dynamodb.DynamoDbShim");
  private static final boolean HAS_S3 = isPresent("io.antipode.s3.S3Shim");
  private static final boolean HAS_SNS = isPresent("io.antipode.sns.SnsShim");

  private final DatastoreRules rules;
  private final ObjectProvider<InstrumentedBeans> report;
  private final ObjectProvider<AntipodeDynamoDbProperties> dynamoDb;
  private final ObjectProvider<AntipodeS3Properties> s3;
  private final Map<List<Object>, AwsShim> shims = new LinkedHashMap<>();

  AwsClientBeans(
      DatastoreRules rules,
      ObjectProvider<InstrumentedBeans> report,
      ObjectProvider<AntipodeDynamoDbProperties> dynamoDb,
      ObjectProvider<AntipodeS3Properties> s3) {
    this.rules = rules;
    this.report = report;
    this.dynamoDb = dynamoDb;
    this.s3 = s3;
  }

  private static boolean isPresent(String shim) {
    return ClassUtils.isPresent(shim, AwsClientBeans.class.getClassLoader());
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof AwsClient client)
        || KillSwitch.isDisabled()
        || AwsShim.isInstrumented(client)) {
      return bean;
    }
    @Nullable Object instrumented = HAS_DYNAMODB ? OfDynamoDb.instrumented(this, name, bean) : null;
    if (instrumented == null && HAS_S3) {
      instrumented = OfS3.instrumented(this, name, bean);
    }
    if (instrumented == null && HAS_SNS) {
      instrumented = OfSns.instrumented(this, name, bean);
    }
    return instrumented == null ? bean : instrumented;
  }

  /** Returns where a client's requests go: its endpoint or, of AWS's own, its region. */
  private static List<Place> places(AwsServiceClientConfiguration settings) {
    @Nullable URI endpoint = settings.endpointOverride().orElse(null);
    if (endpoint == null) {
      return List.of(Place.of(settings.region().id(), HTTPS));
    }
    boolean isPlain = "http".equals(String.valueOf(endpoint.getScheme()).toLowerCase(Locale.ROOT));
    int port = endpoint.getPort() >= 0 ? endpoint.getPort() : isPlain ? HTTP : HTTPS;
    return List.of(Place.of(endpoint.getHost(), port));
  }

  /** Returns a builder of clients that reach what another client reaches. */
  private static <B extends AwsClientBuilder<B, ?>> B alike(
      B builder, AwsServiceClientConfiguration settings) {
    settings.endpointOverride().ifPresent(builder::endpointOverride);
    return builder.region(settings.region()).credentialsProvider(settings.credentialsProvider());
  }

  /**
   * Returns the shim of a bean; null where no rule names it.
   *
   * @param made describes one of a datastore
   */
  private <S extends AwsShim> @Nullable S shim(
      String bean,
      Store store,
      AwsClient client,
      Class<S> kind,
      Function<String, ShimBuilder<?, S>> made) {
    AwsServiceClientConfiguration settings = client.serviceClientConfiguration();
    List<Place> places = places(settings);
    @Nullable DatastoreRule rule = rules.find(store, places, null);
    if (rule == null) {
      report.getObject().notInstrumented(bean, DatastoreRule.described(store, places, null));
      return null;
    }
    @Nullable ReadsFrom readsFrom = rule.readsFrom();
    report.getObject().instrumented(bean, rule.datastore(), readsFrom, null);
    // Messages have no region that is polled.
    Object where = store == Store.SNS ? "" : List.of(settings.region(), places);
    return kind.cast(
        shims.computeIfAbsent(
            List.of(store, rule.datastore(), where),
            absent -> {
              ShimBuilder<?, S> builder = made.apply(rule.datastore());
              return (readsFrom == null ? builder : builder.readsFrom(readsFrom)).register();
            }));
  }

  @Override
  public void destroy() {
    shims.values().forEach(AwsShim::close);
  }

  /** What is known of DynamoDB, which may not be there. */
  private static final class OfDynamoDb {
    static @Nullable Object instrumented(AwsClientBeans all, String name, Object bean) {
      if (bean instanceof DynamoDbClient client) {
        @Nullable DynamoDbShim shim = shim(all, name, client);
        return shim == null ? null : shim.instrument(client);
      }
      if (bean instanceof DynamoDbAsyncClient client) {
        @Nullable DynamoDbShim shim = shim(all, name, client);
        return shim == null ? null : shim.instrument(client);
      }
      return null;
    }

    private static @Nullable DynamoDbShim shim(AwsClientBeans all, String name, AwsClient client) {
      return all.shim(
          name,
          Store.DYNAMODB,
          client,
          DynamoDbShim.class,
          datastore -> {
            DynamoDbShim.Builder builder =
                DynamoDbShim.builder(
                    datastore,
                    alike(DynamoDbClient.builder(), client.serviceClientConfiguration()));
            AntipodeDynamoDbProperties said = all.dynamoDb.getObject();
            said.regions().forEach(builder::region);
            if (said.promiseTable() != null) {
              builder.promiseTable(said.promiseTable());
            }
            return builder;
          });
    }
  }

  /** What is known of S3, which may not be there. */
  private static final class OfS3 {
    static @Nullable Object instrumented(AwsClientBeans all, String name, Object bean) {
      if (bean instanceof S3Client client) {
        @Nullable S3Shim shim = shim(all, name, client, client.utilities());
        return shim == null ? null : shim.instrument(client);
      }
      if (bean instanceof S3AsyncClient client) {
        @Nullable S3Shim shim = shim(all, name, client, client.utilities());
        return shim == null ? null : shim.instrument(client);
      }
      return null;
    }

    private static @Nullable S3Shim shim(
        AwsClientBeans all, String name, AwsClient client, S3Utilities urls) {
      return all.shim(
          name,
          Store.S3,
          client,
          S3Shim.class,
          datastore -> {
            S3Shim.Builder builder =
                S3Shim.builder(
                    datastore,
                    alike(S3Client.builder(), client.serviceClientConfiguration())
                        .forcePathStyle(S3Shim.isPathStyle(urls)));
            AntipodeS3Properties said = all.s3.getObject();
            said.regions().forEach(builder::region);
            said.copies().forEach(builder::copies);
            return builder;
          });
    }
  }

  /** What is known of SNS and SQS, which may not be there. */
  private static final class OfSns {
    static @Nullable Object instrumented(AwsClientBeans all, String name, Object bean) {
      if (!(bean instanceof SnsClient
          || bean instanceof SnsAsyncClient
          || bean instanceof SqsClient
          || bean instanceof SqsAsyncClient)) {
        return null;
      }
      @Nullable SnsShim shim =
          all.shim(name, Store.SNS, (AwsClient) bean, SnsShim.class, SnsShim::builder);
      if (shim == null) {
        return null;
      }
      if (bean instanceof SnsClient client) {
        return shim.instrument(client);
      }
      if (bean instanceof SnsAsyncClient client) {
        return shim.instrument(client);
      }
      return bean instanceof SqsClient client
          ? shim.instrument(client)
          : shim.instrument((SqsAsyncClient) bean);
    }
  }
}
