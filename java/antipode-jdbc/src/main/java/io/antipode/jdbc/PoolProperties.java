package io.antipode.jdbc;

import io.antipode.barrier.PoolWait;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** What pools say of themselves, each by properties of its own kind. */
public final class PoolProperties {
  private static final String HIKARI = "com.zaxxer.hikari.HikariDataSource";

  /** How pools call the number of their connections. */
  private static final List<String> SIZES =
      List.of("getMaximumPoolSize", "getMaxTotal", "getMaxActive", "getMaxPoolSize");

  /** How pools and drivers' data sources call the property. */
  private static final List<String> URLS = List.of("getJdbcUrl", "getUrl", "getURL");

  /** How pools call the milliseconds for which they keep a caller: none, or for ever below 1. */
  private static final List<String> WAITS =
      List.of("getConnectionTimeout", "getMaxWaitMillis", "getMaxWait", "getCheckoutTimeout");

  private PoolProperties() {}

  /**
   * Returns for how long a pool keeps a caller that it has no connection for. HikariCP, also in a
   * decorator, DBCP, Tomcat's, Druid and c3p0 say it.
   */
  static Duration longestWait(DataSource pool) {
    DataSource own = undecorated(pool);
    return WAITS.stream()
        .map(getter -> property(own, getter))
        .filter(Number.class::isInstance)
        .map(each -> ((Number) each).longValue())
        .findFirst()
        .filter(millis -> millis > 0)
        .map(Duration::ofMillis)
        .filter(each -> each.compareTo(PoolWait.FOR_EVER) < 0)
        .orElse(PoolWait.FOR_EVER);
  }

  /**
   * Returns how many connections a pool lends at most: 0 where it says nothing, or has no limit.
   * HikariCP, also in a decorator, DBCP, Tomcat's, Druid, c3p0 and UCP say it.
   */
  static int size(DataSource pool) {
    DataSource own = undecorated(pool);
    return SIZES.stream()
        .map(getter -> property(own, getter))
        .filter(Integer.class::isInstance)
        .mapToInt(each -> Math.max((Integer) each, 0))
        .findFirst()
        .orElse(0);
  }

  private static DataSource undecorated(DataSource pool) {
    try {
      Class<?> hikari = Class.forName(HIKARI, false, pool.getClass().getClassLoader());
      return pool.isWrapperFor(hikari) ? (DataSource) pool.unwrap(hikari) : pool;
    } catch (ClassNotFoundException | SQLException | RuntimeException error) {
      return pool;
    }
  }

  /** Returns the URLs that a pool says it connects to; empty where it says none. */
  public static List<String> urls(DataSource pool) {
    return URLS.stream()
        .map(getter -> property(pool, getter))
        .filter(String.class::isInstance)
        .map(String.class::cast)
        .toList();
  }

  private static @Nullable Object property(DataSource pool, String getter) {
    try {
      return pool.getClass().getMethod(getter).invoke(pool);
    } catch (ReflectiveOperationException | RuntimeException error) {
      return null;
    }
  }
}
