package io.antipode.jdbc;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.PromiseAbandonedException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * One server of an SQL database as one process sees it: values with their stored lineage, and
 * promises, in tables of the library's own. What is written here is read by the shims of other
 * languages, and the reverse.
 */
public abstract class SqlShim extends Shim {
  /**
   * What a read found.
   *
   * @param value the value; null where there is none
   * @param lineage what it depends on
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares what was read.
  public record Found(byte @Nullable [] value, Lineage lineage) {}

  private final Duration timeout;
  private final boolean isStated;

  /** Makes what a builder describes. */
  protected SqlShim(SqlShimBuilder<?, ?> builder) {
    super(builder);
    this.timeout = builder.timeout();
    this.isStated = builder.isStated();
  }

  /** Returns after which reads and writes of its own give the server up. */
  final Duration timeout() {
    return timeout;
  }

  /**
   * Returns whether the application states that all statements of a connection reach one server.
   */
  protected final boolean isStated() {
    return isStated;
  }

  /** Returns its tables. */
  protected abstract Table2<?> table2();

  @Override
  public final boolean holdsReads() {
    return true;
  }

  @Override
  public final boolean canFence() {
    return readsFrom() == ReadsFrom.PRIMARY;
  }

  @Override
  public final boolean canAbandon() {
    return readsFrom() == ReadsFrom.PRIMARY && pollsForPromises();
  }

  @Override
  public final boolean abandon(Promise promise, Duration timeout) throws Exception {
    return table2().abandon(promise, timeout);
  }

  static Duration life(Promise promise) {
    return recordLife(promise);
  }

  /**
   * Sets a key to a value, with the current lineage, in one statement.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws SQLException as {@link #write(String, byte[], Lineage, Promise)}
   */
  public final Lineage write(String key, byte[] value) throws SQLException {
    return write(key, value, Antipode.current(), null);
  }

  /**
   * Sets a key to a value, with a lineage, in one statement; in a transaction where it fulfils a
   * promise.
   *
   * @param lineage what the value depends on
   * @param fulfils a promise that this write fulfils, in the same transaction; null for none
   * @return the lineage with this write, which enters the current scope as well
   * @throws PromiseAbandonedException if the promise was given up; nothing is written
   * @throws ConfigurationException if a table is missing
   * @throws SQLException as the driver does; without an answer to the commit the scope becomes
   *     incomplete
   */
  public final Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws SQLException {
    return table2().write(key, value, lineage, fulfils);
  }

  /**
   * Deletes a key; a tombstone keeps the lineage for who finds nothing.
   *
   * @return the lineage with this write, which enters the current scope as well
   * @throws SQLException as {@link #write(String, byte[], Lineage, Promise)}
   */
  public final Lineage delete(String key, Lineage lineage) throws SQLException {
    return table2().delete(key, lineage);
  }

  /**
   * Records, in the open transaction of a connection of the application's, that a promise is
   * fulfilled: with its commit the record becomes visible together with its data, and a rollback
   * takes it along.
   *
   * @throws PromiseAbandonedException if the promise was given up: let the transaction roll back
   * @throws ConfigurationException if each statement of the connection commits on its own, or the
   *     table is missing
   */
  public final void fulfil(Connection connection, Promise promise) throws SQLException {
    table2().fulfil(connection, promise);
  }

  /**
   * Returns the value of a key, and what it depends on: its stored lineage, and a covering
   * position. It enters the current scope. Under a floor the read is held back until that is met.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws ConfigurationException if a table is missing
   * @throws SQLException as the driver does
   */
  public final Found read(String key) throws Exception {
    Found found = table2().read(key);
    recordRead(found.lineage());
    return found;
  }

  /**
   * Returns what will be found by {@link #read}, in the current scope.
   *
   * @param executor whose threads read, and wait while the read is held back
   */
  public final CompletableFuture<Found> readAsync(String key, Executor executor) {
    return inScope(() -> read(key), executor);
  }

  /** Unregisters, and releases every connection of the shim's own; may be called again. */
  @Override
  public void close() {
    super.close();
    table2().close();
  }
}
