package io.antipode.spring;

import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.postgresql.PostgreSqlShim;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import io.antipode.spring.DatastoreRule.Store;
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
  public DataSource instrument(PostgreSqlShim shim, Pool said, JdbcPool pool) {
    return shim.instrument(pool.source());
  }

  @Override
  public String how(JdbcPool pool) {
    return "asked with each commit";
  }
}
