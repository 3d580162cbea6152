package io.antipode.spring;

import io.antipode.redis.RedisShim;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/**
 * Instruments the connection factories that {@code antipode.datastores} or {@code
 * antipode.redis.factories} name.
 */
@AutoConfiguration
@Import(DatastoresConfiguration.class)
@ConditionalOnClass({RedisShim.class, RedisConnectionFactory.class})
@EnableConfigurationProperties(AntipodeRedisProperties.class)
public class AntipodeRedisAutoConfiguration {
  /** Instruments factories as they are made. */
  @Bean
  static RedisInstrumentation antipodeRedisConnectionFactories(
      Environment environment,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    return new RedisInstrumentation(
        Binder.get(environment).bindOrCreate("antipode.redis", AntipodeRedisProperties.class),
        DatastoreRules.of(environment),
        beans,
        report);
  }
}
