package io.antipode.spring;

import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import io.antipode.mongodb.MongoInstrumentation;
import io.antipode.mongodb.MongoShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration;
import org.springframework.boot.autoconfigure.mongo.MongoClientSettingsBuilderCustomizer;
import org.springframework.boot.autoconfigure.mongo.MongoProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/**
 * Makes Boot's client of MongoDB an instrumented one, where {@code antipode.datastores} or {@code
 * antipode.mongodb} names it.
 */
@AutoConfiguration(before = MongoAutoConfiguration.class)
@ConditionalOnClass({MongoShim.class, MongoClient.class})
@Import(DatastoresConfiguration.class)
@EnableConfigurationProperties({AntipodeMongoDbProperties.class, MongoProperties.class})
public class AntipodeMongoDbAutoConfiguration {
  /** Whether a property names a datastore of MongoDB. */
  static final class Named implements Condition {
    @Override
    public boolean matches(ConditionContext context, AnnotatedTypeMetadata unused) {
      return context.getEnvironment().containsProperty("antipode.mongodb.datastore")
          || DatastoreRules.of(context.getEnvironment()).have(Store.MONGODB);
    }
  }

  /** Makes clients as Boot does, and their shims. */
  @Bean
  @Conditional(Named.class)
  @ConditionalOnMissingBean(MongoClient.class)
  InstrumentedMongoClients antipodeMongoClients(
      AntipodeMongoDbProperties properties,
      Environment environment,
      MongoProperties boot,
      ObjectProvider<MongoClientSettingsBuilderCustomizer> customizers,
      InstrumentedBeans report) {
    return new InstrumentedMongoClients(
        properties,
        DatastoreRules.of(environment),
        boot.getMongoClientDatabase(),
        customizers.orderedStream().toList(),
        report);
  }

  /** The client, in the place of Boot's. */
  @Bean
  @ConditionalOnBean(InstrumentedMongoClients.class)
  @ConditionalOnMissingBean(MongoClient.class)
  MongoClient mongo(InstrumentedMongoClients clients, MongoClientSettings settings) {
    return clients.create(settings);
  }

  /**
   * The shim of that client, which fulfils promises; none where no rule names the client. With the
   * kill switch, too: who waits for a promise may be another process. It is closed with the
   * clients.
   */
  @Bean(destroyMethod = "")
  @ConditionalOnBean(InstrumentedMongoClients.class)
  @ConditionalOnMissingBean
  @Nullable MongoShim antipodeMongoShim(InstrumentedMongoClients clients, MongoClient made) {
    return clients.shim();
  }

  /** Says which clients record nothing. */
  @Bean
  static BeanPostProcessor antipodeMongoDbBeans(ObjectProvider<InstrumentedBeans> report) {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        if (bean instanceof MongoClient client
            && !MongoInstrumentation.isInstrumented(client)
            && !KillSwitch.isDisabled()) {
          report.getObject().notInstrumented(name, described(client));
        }
        return bean;
      }
    };
  }

  private static String described(MongoClient client) {
    List<Place> places = InstrumentedMongoClients.places(client.getClusterDescription());
    return DatastoreRule.described(Store.MONGODB, places, null)
        + "; one that Boot does not make needs MongoShim.instrument";
  }
}
