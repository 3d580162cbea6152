package io.antipode.barrier;

import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;

/**
 * A connection of the library's own to the one server where the caller will read. One thread uses
 * it at a time, but for {@link #interrupt}.
 */
public interface Endpoint extends AutoCloseable {
  /**
   * Returns whether the server's history cannot have changed under the live connection. Then what
   * was seen once stays known until it is closed.
   */
  default boolean isPinned() {
    return false;
  }

  /**
   * Returns whether the server ends a pause once what the last poll missed may be visible. Then a
   * pause lasts up to a second.
   */
  default boolean isBlocking() {
    return false;
  }

  /** Returns whether it ends pauses for promises, too. */
  default boolean isBlockingForPromises() {
    return false;
  }

  /**
   * Polls once, without waiting for the writes.
   *
   * @param writes of this datastore; not empty
   * @param timeout the longest that the poll itself may take
   * @throws UnreachableException if the poll failed and is worth repeating
   * @throws Exception if polling again cannot help
   */
  Observation observe(Collection<WriteId> writes, Duration timeout) throws Exception;

  /**
   * Asks once for the records of promises. Called only where {@link Shim#pollsForPromises}.
   *
   * @throws UnreachableException if the poll failed and is worth repeating
   * @throws Exception if polling again cannot help
   */
  default Observation promised(Collection<Promise> promises, Duration timeout) throws Exception {
    throw new UnsupportedOperationException(getClass().getName() + " cannot ask for promises");
  }

  /**
   * Returns whether the server says that it is a replica; false where it does not say. A dry run
   * asks clients of which nobody declared that they read from one.
   *
   * @throws Exception if it does not answer
   */
  default boolean isReplica(Duration timeout) throws Exception {
    return false;
  }

  /**
   * Waits until the time is over, until woken, or until the server pushes something; may return
   * early.
   */
  default void pause(Duration timeout, Wake wake) throws Exception {
    wake.await(timeout);
  }

  /** Nobody waits any more: ends what the server pushes until the next pause. */
  default void rest() throws Exception {}

  /** Makes a poll that another thread is in fail soon. Thread-safe; may do nothing. */
  default void interrupt() {}

  /** Releases the connection; may be called again. */
  @Override
  void close();
}
