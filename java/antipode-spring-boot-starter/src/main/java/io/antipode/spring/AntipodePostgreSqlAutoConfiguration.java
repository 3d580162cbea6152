package io.antipode.spring;

import io.antipode.postgresql.PostgreSqlShim;
import java.util.Map;
import javax.sql.DataSource;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** Instruments the pools of PostgreSQL whose addresses {@code antipode.datastores} names. */
@AutoConfiguration
@Import(DatastoresConfiguration.class)
@ConditionalOnClass({PostgreSqlShim.class, DataSource.class})
public class AntipodePostgreSqlAutoConfiguration {
  /** Instruments pools as they are made. */
  @Bean
  static DataSourceInstrumentation antipodePostgreSqlDataSources(
      Environment environment,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    return new DataSourceInstrumentation(
        new PostgreSqlPools(),
        new NamedBeans<>("antipode.datastores", Map.of()),
        DatastoreRules.of(environment),
        beans,
        report);
  }
}
