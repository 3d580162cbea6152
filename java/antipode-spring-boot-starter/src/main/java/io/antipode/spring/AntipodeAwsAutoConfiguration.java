package io.antipode.spring;

import io.antipode.aws.AwsShim;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/**
 * Instruments the clients of DynamoDB, S3, SNS and SQS of the AWS SDK whose region or endpoint
 * {@code antipode.datastores} names.
 */
@AutoConfiguration
@Import(DatastoresConfiguration.class)
@ConditionalOnClass(AwsShim.class)
@EnableConfigurationProperties({AntipodeDynamoDbProperties.class, AntipodeS3Properties.class})
public class AntipodeAwsAutoConfiguration {
  /** Instruments clients as they are made. */
  @Bean
  static AwsClientBeans antipodeAwsClients(
      Environment environment,
      ObjectProvider<InstrumentedBeans> report,
      ObjectProvider<AntipodeDynamoDbProperties> dynamoDb,
      ObjectProvider<AntipodeS3Properties> s3) {
    return new AwsClientBeans(DatastoreRules.of(environment), report, dynamoDb, s3);
  }
}
