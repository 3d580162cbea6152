package io.antipode.spring;

import io.antipode.mysql.MySqlShim;
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

/** Instruments the pools that {@code antipode.datastores} or {@code antipode.mysql.pools} name. */
@AutoConfiguration
@Import(DatastoresConfiguration.class)
@ConditionalOnClass({MySqlShim.class, DataSource.class})
@EnableConfigurationProperties(AntipodeMySqlProperties.class)
public class AntipodeMySqlAutoConfiguration {
  /** Instruments pools as they are made. */
  @Bean
  static DataSourceInstrumentation antipodeDataSources(
      Environment environment,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    AntipodeMySqlProperties properties =
        Binder.get(environment).bindOrCreate("antipode.mysql", AntipodeMySqlProperties.class);
    return new DataSourceInstrumentation(
        new MySqlPools(),
        new NamedBeans<>("antipode.mysql.pools", properties.pools()),
        DatastoreRules.of(environment),
        beans,
        report);
  }
}
