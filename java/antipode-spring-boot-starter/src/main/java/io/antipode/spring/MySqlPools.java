package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.mysql.MySqlShim;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import io.antipode.spring.DatastoreRule.Store;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Pools of MySQL and MariaDB. */
final class MySqlPools implements PoolShims<MySqlShim> {
  @Override
  public Store store() {
    return Store.MYSQL;
  }

  @Override
  public MySqlShim register(String datastore, String url, @Nullable Login login, Pool said) {
    MySqlShim.Builder builder = MySqlShim.builder(datastore, url);
    if (login != null) {
      builder.user(login.user(), login.password());
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
    return builder.register();
  }

  @Override
  public DataSource instrument(MySqlShim shim, Pool said, JdbcPool pool) {
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
