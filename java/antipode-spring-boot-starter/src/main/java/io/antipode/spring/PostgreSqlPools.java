package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.postgresql.PostgreSqlShim;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import io.antipode.spring.DatastoreRule.Store;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Pools of PostgreSQL. */
final class PostgreSqlPools implements PoolShims<PostgreSqlShim> {
  @Override
  public Store store() {
    return Store.POSTGRESQL;
  }

  @Override
  public PostgreSqlShim register(String datastore, String url, @Nullable Login login, Pool said) {
    PostgreSqlShim.Builder builder = PostgreSqlShim.builder(datastore, url);
    if (login != null) {
      builder.user(login.user(), login.password());
    }
    if (said.readsFrom() == ReadsFrom.REPLICA) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (said.oneServer()) {
      builder.oneServer();
    }
    return builder.register();
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
