package io.antipode.programs;

import com.alibaba.druid.pool.DruidDataSource;
import com.mchange.v2.c3p0.ComboPooledDataSource;
import com.p6spy.engine.spy.P6DataSource;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;

/** The pools that applications have, and what decorates them. */
final class Pools {
  /** Nobody has more connections at a time. */
  private static final int CONNECTIONS = 2;

  private Pools() {}

  /** A pool, and what closes it. */
  record Pool(DataSource source, AutoCloseable closing) {}

  /** Returns a pool by the name of its kind. */
  static Pool of(String kind, String url, String user) {
    return switch (kind) {
      case "hikari" -> closed(hikari(url, user, true));
      case "hikari-manual" -> closed(hikari(url, user, false));
      case "dbcp" -> closed(dbcp(url, user));
      case "tomcat" -> tomcat(url, user);
      case "druid" -> closed(druid(url, user));
      case "c3p0" -> closed(c3p0(url, user));
      case "p6spy" -> {
        HikariDataSource decorated = hikari(url, user, true);
        yield new Pool(new P6DataSource(decorated), decorated);
      }
      default -> throw new IllegalArgumentException("no pool is called " + kind);
    };
  }

  private static <T extends DataSource & AutoCloseable> Pool closed(T pool) {
    return new Pool(pool, pool);
  }

  private static HikariDataSource hikari(String url, String user, boolean commits) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(user);
    config.setPassword(user);
    config.setMaximumPoolSize(CONNECTIONS);
    config.setAutoCommit(commits);
    return new HikariDataSource(config);
  }

  private static BasicDataSource dbcp(String url, String user) {
    BasicDataSource pool = new BasicDataSource();
    pool.setUrl(url);
    pool.setUsername(user);
    pool.setPassword(user);
    pool.setMaxTotal(CONNECTIONS);
    pool.setAccessToUnderlyingConnectionAllowed(true);
    return pool;
  }

  private static Pool tomcat(String url, String user) {
    org.apache.tomcat.jdbc.pool.DataSource pool = new org.apache.tomcat.jdbc.pool.DataSource();
    pool.setUrl(url);
    pool.setUsername(user);
    pool.setPassword(user);
    pool.setMaxActive(CONNECTIONS);
    pool.setInitialSize(0);
    // It commits what was left open as it tests a connection, and rollbackOnReturn holds where
    // defaultAutoCommit is false alone: tested as it returns, that is of the request that left it.
    pool.setTestOnReturn(true);
    pool.setTestOnBorrow(true);
    pool.setValidationInterval(0);
    pool.setValidationQuery("SELECT 1");
    return new Pool(pool, pool::close);
  }

  private static DruidDataSource druid(String url, String user) {
    DruidDataSource pool = new DruidDataSource();
    pool.setUrl(url);
    pool.setUsername(user);
    pool.setPassword(user);
    pool.setMaxActive(CONNECTIONS);
    pool.setTestOnBorrow(true);
    pool.setValidationQuery("SELECT 1");
    return pool;
  }

  private static ComboPooledDataSource c3p0(String url, String user) {
    ComboPooledDataSource pool = new ComboPooledDataSource();
    pool.setJdbcUrl(url);
    pool.setUser(user);
    pool.setPassword(user);
    pool.setMinPoolSize(1);
    pool.setInitialPoolSize(1);
    // It takes one back when it likes: the next request would wait for what that left open.
    pool.setMaxPoolSize(1);
    pool.setTestConnectionOnCheckout(true);
    return pool;
  }
}
