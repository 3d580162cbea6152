package io.antipode.spring;

import com.zaxxer.hikari.HikariDataSource;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mysql.MySqlShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.util.ClassUtils;

/** Puts pools that properties name under shims, which are closed with the application. */
final class DataSourceInstrumentation
    implements BeanPostProcessor, SmartInitializingSingleton, DisposableBean {
  private static final boolean HAS_HIKARI =
      ClassUtils.isPresent(
          "com.zaxxer.hikari.HikariDataSource", DataSourceInstrumentation.class.getClassLoader());

  private static final List<Class<?>> ROUTING =
      Stream.of("lookup.AbstractRoutingDataSource", "LazyConnectionDataSourceProxy")
          .map(name -> "org.springframework.jdbc.datasource." + name)
          .filter(
              name -> ClassUtils.isPresent(name, DataSourceInstrumentation.class.getClassLoader()))
          .<Class<?>>map(
              name ->
                  ClassUtils.resolveClassName(
                      name, DataSourceInstrumentation.class.getClassLoader()))
          .toList();

  private static final String TRACKING = "trackSessionState";

  private final NamedBeans<Pool> properties;
  private final ListableBeanFactory beans;
  private final List<MySqlShim> shims = new ArrayList<>();

  DataSourceInstrumentation(AntipodeMySqlProperties properties, ListableBeanFactory beans) {
    this.beans = beans;
    this.properties = new NamedBeans<>("antipode.mysql.pools", properties.pools());
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    Pool pool = bean instanceof DataSource ? properties.find(name) : null;
    if (pool == null || KillSwitch.isDisabled()) {
      return bean;
    }
    DataSource source = (DataSource) bean;
    return HAS_HIKARI && Hikari.isIn(source) && !isRouting(source)
        ? Hikari.instrument(this, name, pool, source)
        : instrumented(
            shim(name, pool, pool.url(), pool.username(), pool.password()), pool, source);
  }

  /** What chooses among several pools is not to be named: the pools are, each with its server. */
  private static boolean isRouting(DataSource source) {
    return ROUTING.stream().anyMatch(type -> within(source, type) != null);
  }

  /** Returns what a decorator stands for; null for none of a type. */
  private static <T> @Nullable T within(DataSource source, Class<T> type) {
    try {
      return source.isWrapperFor(type) ? source.unwrap(type) : null;
    } catch (SQLException | RuntimeException error) {
      return null;
    }
  }

  @Override
  public void afterSingletonsInstantiated() {
    if (!KillSwitch.isDisabled()) {
      properties.requireBeans(beans, DataSource.class);
    }
  }

  private static DataSource instrumented(MySqlShim shim, Pool pool, DataSource source) {
    Set<String> tables = pool.tables();
    return tables == null || tables.isEmpty()
        ? shim.instrument(source)
        : shim.instrument(source, tables);
  }

  private MySqlShim shim(
      String name,
      Pool pool,
      @Nullable String url,
      @Nullable String user,
      @Nullable String password) {
    properties.requireDatastore(name, pool.datastore());
    if (url == null) {
      throw properties.refused(name, ".url: of this kind of pool it cannot be found out");
    }
    MySqlShim.Builder builder = MySqlShim.builder(pool.datastore(), url);
    if (user != null) {
      builder.user(user, password == null ? "" : password);
    }
    if (pool.readsFrom() == ReadsFrom.REPLICA) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (pool.oneServer()) {
      builder.oneServer();
    }
    Set<String> readonly = pool.readonlyFunctions();
    if (readonly != null) {
      builder.readonlyFunctions(readonly);
    }
    MySqlShim shim = builder.register();
    shims.add(shim);
    return shim;
  }

  /** What is known of pools of HikariCP, which are Boot's own, and may be decorated. */
  private static final class Hikari {
    static boolean isIn(DataSource source) {
      return within(source, HikariDataSource.class) != null;
    }

    static DataSource instrument(
        DataSourceInstrumentation all, String name, Pool pool, DataSource source) {
      HikariDataSource hikari = Objects.requireNonNull(within(source, HikariDataSource.class));
      String url = hikari.getJdbcUrl();
      if (!hikari.isRunning() && url != null && url.startsWith("jdbc:mysql:")) {
        hikari.getDataSourceProperties().putIfAbsent(TRACKING, "true");
      }
      MySqlShim shim =
          all.shim(
              name,
              pool,
              pool.url() == null ? url : pool.url(),
              pool.username() == null ? hikari.getUsername() : pool.username(),
              pool.password() == null ? hikari.getPassword() : pool.password());
      return instrumented(shim, pool, source);
    }
  }

  @Override
  public void destroy() {
    shims.forEach(MySqlShim::close);
  }
}
