package io.antipode.spring;

import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.postgresql.PostgreSqlShim;
import io.antipode.spring.DatastoreRule.Store;
import java.util.Set;
import javax.sql.DataSource;

/** Pools of PostgreSQL. */
final class PostgreSqlPools implements PoolShims<PostgreSqlShim> {
  @Override
  public Store store() {
    return Store.POSTGRESQL;
  }

  @Override
  public SqlShimBuilder<?, PostgreSqlShim> builder(String datastore, String url) {
    return PostgreSqlShim.builder(datastore, url);
  }

  @Override
  public DataSource instrument(PostgreSqlShim shim, JdbcPoolProperties said, JdbcPool pool) {
    Set<String> tables = said.tables();
    return tables == null || tables.isEmpty()
        ? shim.instrument(pool.source())
        : shim.instrument(pool.source(), tables);
  }

  @Override
  public String how(JdbcPool pool) {
    return "asked with each commit";
  }
}
