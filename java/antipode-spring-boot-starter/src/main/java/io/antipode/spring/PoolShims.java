package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.jdbc.SqlShim;
import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.spring.DatastoreRule.Store;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * How pools of one kind of database get their shims.
 *
 * @param <S> what those are
 */
interface PoolShims<S extends SqlShim> {
  /** Who asks a server. */
  record Login(String user, String password) {}

  /** Returns which kind that is. */
  Store store();

  /** Returns the builder of a shim of a server. */
  SqlShimBuilder<?, S> builder(String datastore, String url);

  /**
   * Returns the shim of a pool, registered.
   *
   * @param login null where the URL says it, or nothing does
   * @param said what properties say of the pool
   */
  default S register(String datastore, String url, @Nullable Login login, JdbcPoolProperties said) {
    SqlShimBuilder<?, S> builder = builder(datastore, url);
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

  /** Returns the pool, instrumented by its shim. */
  DataSource instrument(S shim, JdbcPoolProperties said, JdbcPool pool);

  /** Returns how positions come, for people. */
  String how(JdbcPool pool);
}
