package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.jdbc.InstrumentedPool;
import io.antipode.jdbc.SqlShim;
import io.antipode.runtime.KillSwitch;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;

/**
 * Puts pools of one kind of database under shims that properties name, by their bean or by their
 * address. Shims are closed with the application.
 */
final class DataSourceInstrumentation
    implements BeanPostProcessor, SmartInitializingSingleton, DisposableBean {
  private final PoolShims<?> kind;
  private final NamedBeans<JdbcPoolProperties> properties;
  private final DatastoreRules rules;
  private final ListableBeanFactory beans;
  private final ObjectProvider<InstrumentedBeans> report;
  private final List<Shim> shims = new ArrayList<>();

  /** What chooses among pools by an application's own word. */
  private final List<DataSource> routers = new ArrayList<>();

  /** Sources whose connections are instrumented, and by their beans the pools that are not. */
  private final List<DataSource> instrumented = new ArrayList<>();

  private final Map<String, JdbcPool> others = new LinkedHashMap<>();

  DataSourceInstrumentation(
      PoolShims<?> kind,
      NamedBeans<JdbcPoolProperties> properties,
      DatastoreRules rules,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    this.kind = kind;
    this.properties = properties;
    this.rules = rules;
    this.beans = beans;
    this.report = report;
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof DataSource source) || KillSwitch.isDisabled()) {
      return bean;
    }
    JdbcPoolProperties named = properties.find(name);
    if (named == null && JdbcPool.isRouting(source)) {
      if (JdbcPool.isRouter(source)) {
        routers.add(source);
      }
      return bean;
    }
    if (named == null && InstrumentedPool.shimOf(source) != null) {
      instrumented.add(source);
      return bean;
    }
    JdbcPool pool = JdbcPool.of(source, kind.store());
    DatastoreRule rule = rules.find(kind.store(), pool.places(), pool.schema());
    if (named == null && rule == null) {
      if (pool.mayBeOurs()) {
        others.put(name, pool);
      }
      return bean;
    }
    DataSource made = instrumented(kind, name, JdbcPoolProperties.of(named, rule), pool);
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
  private void requirePrimary(Shim shim) {
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

  private <S extends SqlShim> DataSource instrumented(
      PoolShims<S> ofKind, String name, JdbcPoolProperties said, JdbcPool pool) {
    String datastore = properties.requireDatastore(name, said.datastore());
    String url = either(said.url(), pool.url());
    if (url == null) {
      throw properties.refused(name, ".url: of this kind of pool it cannot be found out");
    }
    String user = either(said.username(), pool.user());
    String password = either(said.password(), pool.password());
    PoolShims.Login login =
        user == null ? null : new PoolShims.Login(user, password == null ? "" : password);
    S shim = ofKind.register(datastore, url, login, said);
    shims.add(shim);
    DataSource made = ofKind.instrument(shim, said, pool);
    report.getObject().instrumented(name, shim.datastore(), shim.readsFrom(), ofKind.how(pool));
    return made;
  }

  private static @Nullable String either(@Nullable String said, @Nullable String found) {
    return said == null ? found : said;
  }

  @Override
  public void destroy() {
    shims.forEach(Shim::close);
  }
}
