package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mysql.MySqlShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import io.antipode.spring.DatastoreRule.Store;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;

/**
 * Puts pools under shims that properties name, by their bean or by their address. Shims are closed
 * with the application.
 */
final class DataSourceInstrumentation
    implements BeanPostProcessor, SmartInitializingSingleton, DisposableBean {
  private final NamedBeans<Pool> properties;
  private final DatastoreRules rules;
  private final ListableBeanFactory beans;
  private final ObjectProvider<InstrumentedBeans> report;
  private final List<MySqlShim> shims = new ArrayList<>();

  /** What chooses among pools by an application's own word. */
  private final List<DataSource> routers = new ArrayList<>();

  /** Sources whose connections are instrumented, and by their beans the pools that are not. */
  private final List<DataSource> instrumented = new ArrayList<>();

  private final Map<String, JdbcPool> others = new LinkedHashMap<>();

  DataSourceInstrumentation(
      AntipodeMySqlProperties properties,
      DatastoreRules rules,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    this.rules = rules;
    this.beans = beans;
    this.report = report;
    this.properties = new NamedBeans<>("antipode.mysql.pools", properties.pools());
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof DataSource source) || KillSwitch.isDisabled()) {
      return bean;
    }
    Pool named = properties.find(name);
    if (named == null && JdbcPool.isRouting(source)) {
      if (JdbcPool.isRouter(source)) {
        routers.add(source);
      }
      return bean;
    }
    if (named == null && MySqlShim.of(source) != null) {
      instrumented.add(source);
      return bean;
    }
    JdbcPool pool = JdbcPool.of(source);
    DatastoreRule rule = rules.find(Store.MYSQL, pool.places(), pool.schema());
    if (named == null && rule == null) {
      if (pool.mayBeOurs()) {
        others.put(name, pool);
      }
      return bean;
    }
    DataSource made = instrumented(name, Pool.of(named, rule), pool);
    instrumented.add(made);
    return made;
  }

  @Override
  public void afterSingletonsInstantiated() {
    if (KillSwitch.isDisabled()) {
      return;
    }
    properties.requireBeans(beans, DataSource.class);
    if (StaleReads.goToPrimary()) {
      shims.forEach(this::requirePrimary);
    }
    others.forEach(
        (name, pool) -> {
          if (instrumented.stream().noneMatch(pool::isIn)) {
            report.getObject().notInstrumented(name, pool.described());
          }
        });
  }

  /** A read can go to the primary where a router sends it there before it is made. */
  private void requirePrimary(MySqlShim shim) {
    if (shim.readsFrom() == ReadsFrom.PRIMARY) {
      return;
    }
    String datastore = shim.datastore();
    boolean hasPrimary =
        shims.stream()
            .anyMatch(
                other ->
                    other.readsFrom() == ReadsFrom.PRIMARY && other.datastore().equals(datastore));
    if (!hasPrimary || routers.isEmpty()) {
      throw new ConfigurationException(
          "antipode.on-stale=primary needs, for the replica of "
              + datastore
              + ", an instrumented pool of its primary, and a data source over both that asks where"
              + " to read: make one with PrimaryWhenStaleDataSource, or ask Barriers.readsFrom in an"
              + " AbstractRoutingDataSource");
    }
  }

  private DataSource instrumented(String name, Pool said, JdbcPool pool) {
    pool.track();
    MySqlShim shim = shim(name, said, pool);
    String how = pool.isTracked() ? "tracked" : "asked after each commit";
    report.getObject().instrumented(name, shim.datastore(), shim.readsFrom(), how);
    Set<String> tables = said.tables();
    return tables == null || tables.isEmpty()
        ? shim.instrument(pool.source())
        : shim.instrument(pool.source(), tables);
  }

  private MySqlShim shim(String name, Pool said, JdbcPool pool) {
    String datastore = properties.requireDatastore(name, said.datastore());
    String url = either(said.url(), pool.url());
    if (url == null) {
      throw properties.refused(name, ".url: of this kind of pool it cannot be found out");
    }
    MySqlShim.Builder builder = MySqlShim.builder(datastore, url);
    String user = either(said.username(), pool.user());
    String password = either(said.password(), pool.password());
    if (user != null) {
      builder.user(user, password == null ? "" : password);
    }
    if (said.readsFrom() == ReadsFrom.REPLICA) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (said.oneServer()) {
      builder.oneServer();
    }
    Set<String> readonly = said.readonlyFunctions();
    if (readonly != null) {
      builder.readonlyFunctions(readonly);
    }
    MySqlShim shim = builder.register();
    shims.add(shim);
    return shim;
  }

  private static @Nullable String either(@Nullable String said, @Nullable String found) {
    return said == null ? found : said;
  }

  @Override
  public void destroy() {
    shims.forEach(MySqlShim::close);
  }
}
