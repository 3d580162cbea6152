package io.antipode.spring;

import io.antipode.postgresql.PostgreSqlShim;
import javax.sql.DataSource;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/**
 * Instruments the pools that {@code antipode.datastores} or {@code antipode.postgresql.pools} name.
 */
@AutoConfiguration
@Import(DatastoresConfiguration.class)
@ConditionalOnClass({PostgreSqlShim.class, DataSource.class})
@EnableConfigurationProperties(AntipodePostgreSqlProperties.class)
public class AntipodePostgreSqlAutoConfiguration {
  /** Instruments pools as they are made. */
  @Bean
  static DataSourceInstrumentation antipodePostgreSqlDataSources(
      Environment environment,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    AntipodePostgreSqlProperties properties =
        Binder.get(environment)
            .bindOrCreate("antipode.postgresql", AntipodePostgreSqlProperties.class);
    return new DataSourceInstrumentation(
        new PostgreSqlPools(),
        new NamedBeans<>("antipode.postgresql.pools", properties.pools()),
        DatastoreRules.of(environment),
        beans,
        report);
  }
}
