package io.antipode.spring;

import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import io.antipode.mongodb.MongoInstrumentation;
import io.antipode.mongodb.MongoShim;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration;
import org.springframework.boot.autoconfigure.mongo.MongoClientSettingsBuilderCustomizer;
import org.springframework.boot.autoconfigure.mongo.MongoProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** Makes Boot's client of MongoDB an instrumented one, where {@code antipode.mongodb} names it. */
@AutoConfiguration(before = MongoAutoConfiguration.class)
@ConditionalOnClass({MongoShim.class, MongoClient.class})
@ConditionalOnProperty("antipode.mongodb.datastore")
@EnableConfigurationProperties({AntipodeMongoDbProperties.class, MongoProperties.class})
public class AntipodeMongoDbAutoConfiguration {
  /** Makes clients as Boot does, and their shims. */
  @Bean
  @ConditionalOnMissingBean(MongoClient.class)
  InstrumentedMongoClients antipodeMongoClients(
      AntipodeMongoDbProperties properties,
      MongoProperties boot,
      ObjectProvider<MongoClientSettingsBuilderCustomizer> customizers) {
    return new InstrumentedMongoClients(
        properties, boot.getMongoClientDatabase(), customizers.orderedStream().toList());
  }

  /** The client, in the place of Boot's. */
  @Bean
  @ConditionalOnMissingBean(MongoClient.class)
  MongoClient mongo(InstrumentedMongoClients clients, MongoClientSettings settings) {
    return clients.create(settings);
  }

  /** Says which clients record nothing. */
  @Bean
  static BeanPostProcessor antipodeMongoDbBeans() {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        if (bean instanceof MongoClient client
            && !MongoInstrumentation.isInstrumented(client)
            && !KillSwitch.isDisabled()) {
          Counts.logOnce(
              "client",
              "",
              name,
              () -> "the bean " + name + " records no writes: make it by MongoShim.instrument");
        }
        return bean;
      }
    };
  }
}
