package io.antipode.spring;

import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.mysql.MySqlShim;
import io.antipode.spring.DatastoreRule.Store;
import java.util.Set;
import javax.sql.DataSource;

/** Pools of MySQL and MariaDB. */
final class MySqlPools implements PoolShims<MySqlShim> {
  @Override
  public Store store() {
    return Store.MYSQL;
  }

  @Override
  public SqlShimBuilder<?, MySqlShim> builder(String datastore, String url) {
    return MySqlShim.builder(datastore, url);
  }

  @Override
  public DataSource instrument(MySqlShim shim, JdbcPoolProperties said, JdbcPool pool) {
    pool.track();
    Set<String> tables = said.tables();
    return tables == null || tables.isEmpty()
        ? shim.instrument(pool.source())
        : shim.instrument(pool.source(), tables);
  }

  @Override
  public String how(JdbcPool pool) {
    return pool.isTracked() ? "tracked" : "asked after each commit";
  }
}
