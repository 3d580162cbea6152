package io.antipode.jdbc;

import io.antipode.barrier.PoolWait;
import java.time.Duration;
import javax.sql.DataSource;

/**
 * For how long a pool's caller may be kept before it has a connection: no longer than the pool
 * itself would keep it, nor than the application last let a statement take. Thread-safe.
 */
final class WaitLimits {
  private final DataSource pool;
  private volatile Duration query = PoolWait.FOR_EVER;

  WaitLimits(DataSource pool) {
    this.pool = pool;
  }

  /** The application limits a statement; by nothing with 0. */
  void limited(int seconds) {
    query = seconds <= 0 ? PoolWait.FOR_EVER : Duration.ofSeconds(seconds);
  }

  /** Returns the limit. */
  Duration longest() {
    Duration own = PoolProperties.longestWait(pool);
    return own.compareTo(query) < 0 ? own : query;
  }
}
