package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.jdbc.InstrumentedPool;
import io.antipode.runtime.KillSwitch;
import java.util.Map;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Reads at a replica in transactions that only read ({@code @Transactional(readOnly = true)}), as
 * soon as that shows what the request depends on, and at the primary where it does not in time, as
 * {@link Barriers#readsFrom} says. All else goes to the primary. A transaction takes its connection
 * with its first statement.
 *
 * <pre>{@code
 * @Bean
 * @Primary
 * DataSource dataSource(@Qualifier("primary") DataSource primary, @Qualifier("replica") DataSource replica) {
 *   return new PrimaryWhenStaleDataSource(primary, replica);
 * }
 * }</pre>
 */
public class PrimaryWhenStaleDataSource extends LazyConnectionDataSourceProxy {
  /**
   * Routes between two pools.
   *
   * @param primary the instrumented pool of a datastore's primary
   * @param replica the instrumented pool of its replica
   * @throws ConfigurationException if they are not, as properties name them
   */
  public PrimaryWhenStaleDataSource(DataSource primary, DataSource replica) {
    super(new Router(primary, replica));
  }

  private static final class Router extends AbstractRoutingDataSource {
    private final String datastore;

    Router(DataSource primary, DataSource replica) {
      this.datastore = KillSwitch.isDisabled() ? "" : datastore(primary, ReadsFrom.PRIMARY);
      if (!KillSwitch.isDisabled() && !datastore.equals(datastore(replica, ReadsFrom.REPLICA))) {
        throw new ConfigurationException(
            "a PrimaryWhenStaleDataSource is over the pools of one datastore's primary and replica");
      }
      setTargetDataSources(Map.of(ReadsFrom.PRIMARY, primary, ReadsFrom.REPLICA, replica));
      afterPropertiesSet();
    }

    private static String datastore(DataSource pool, ReadsFrom role) {
      Shim shim = InstrumentedPool.shimOf(pool);
      if (shim == null || shim.readsFrom() != role) {
        throw new ConfigurationException(
            "a PrimaryWhenStaleDataSource is over two instrumented pools, the primary's first: let"
                + " antipode.datastores or antipode.mysql.pools name both, with reads_from=replica"
                + " at the replica's");
      }
      return shim.datastore();
    }

    @Override
    protected ReadsFrom determineCurrentLookupKey() {
      return TransactionSynchronizationManager.isCurrentTransactionReadOnly()
          ? Barriers.readsFrom(datastore)
          : ReadsFrom.PRIMARY;
    }
  }
}
