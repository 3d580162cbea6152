package trainticket.order;

import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;

/** Transactions that only read go to a replica. */
@Configuration(proxyBeanMethods = false)
class Databases {
  // --8<-- [start:pools]
  @Bean(defaultCandidate = false)
  @ConfigurationProperties("train-ticket.primary")
  HikariDataSource primary() {
    return new HikariDataSource();
  }

  @Bean(defaultCandidate = false)
  @ConfigurationProperties("train-ticket.replica")
  HikariDataSource replica() {
    return new HikariDataSource();
  }

  @Bean
  @Primary
  DataSource dataSource(
      @Qualifier("primary") DataSource primary, @Qualifier("replica") DataSource replica) {
    LazyConnectionDataSourceProxy routed = new LazyConnectionDataSourceProxy(primary);
    routed.setReadOnlyDataSource(replica);
    return routed;
  }
  // --8<-- [end:pools]
}
