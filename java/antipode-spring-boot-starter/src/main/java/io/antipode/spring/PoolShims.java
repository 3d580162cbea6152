package io.antipode.spring;

import io.antipode.barrier.Shim;
import io.antipode.spring.AntipodeMySqlProperties.Pool;
import io.antipode.spring.DatastoreRule.Store;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * How pools of one kind of database get their shims.
 *
 * @param <S> what those are
 */
interface PoolShims<S extends Shim> {
  /** Who asks a server. */
  record Login(String user, String password) {}

  /** Returns which kind that is. */
  Store store();

  /**
   * Returns the shim of a pool, registered.
   *
   * @param login null where the URL says it, or nothing does
   * @param said what properties say of the pool
   */
  S register(String datastore, String url, @Nullable Login login, Pool said);

  /** Returns the pool, instrumented by its shim. */
  DataSource instrument(S shim, Pool said, JdbcPool pool);

  /** Returns how positions come, for people. */
  String how(JdbcPool pool);
}
