package io.antipode.barrier;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A read that may have to wait, before its client takes a connection of a pool: others wait for
 * that, perhaps the write that it waits for. It decides nothing: whatever is not shown in time, the
 * connection that reads says so.
 */
public final class PoolWait {
  /**
   * A pool.
   *
   * @param <C> its connections
   * @param <E> what it throws
   */
  public interface Pool<C, E extends Exception> {
    /** Takes a connection. */
    C take() throws E;

    /** Returns for how long a caller may be kept before it has a connection. */
    default Duration longest() {
      return FOR_EVER;
    }

    /**
     * Looks once on a connection that was taken, without waiting.
     *
     * @return what it shows; null where it says by itself, when it reads, why it cannot be asked
     */
    @Nullable Observation look(C connection, Floor floor);

    /** Gives a connection back. */
    void giveBack(C connection) throws E;
  }

  /** Of a pool that has no limit. */
  public static final Duration FOR_EVER = Duration.ofNanos(Long.MAX_VALUE);

  private PoolWait() {}

  /**
   * Waits, on the library's own connection, for what the next read of a client must see at a
   * replica: for a client that then takes a connection where its server may hold it back.
   */
  public static void await(Shim client) throws InterruptedException {
    Floor floor = pending(client);
    if (floor != null) {
      floor.await(Shims.sharedWatcher(client), FOR_EVER);
    }
  }

  private static @Nullable Floor pending(Shim client) {
    Floor floor = client.readsFrom() == ReadsFrom.REPLICA ? Floor.currentAgain(client) : null;
    return floor == null || floor.isProved() ? null : floor; // Its server is likely to show it.
  }

  /**
   * Takes a connection for the next read of a client. It first waits on the library's own
   * connection to that server, where there is one. A connection that leads elsewhere, and shows
   * less, goes back to its pool, and the wait is repeated, until the time of the read is up, or
   * that of the pool's own: then the read goes on waiting on its connection.
   */
  public static <C, E extends Exception> C take(Shim client, Pool<C, E> pool)
      throws E, InterruptedException {
    Floor floor = pending(client);
    if (floor == null) {
      return pool.take();
    }
    Duration longest = pool.longest();
    long started = floor.clock().nanoTime();
    floor.await(Shims.sharedWatcher(client), longest);
    Pacer pacer = new Pacer();
    while (true) {
      C connection = pool.take();
      boolean isOver = floor.clock().nanoTime() - started >= longest.toNanos();
      Observation shown = isOver || floor.left().isZero() ? null : pool.look(connection, floor);
      if (shown == null || floor.mayKeep(shown)) {
        return connection;
      }
      pool.giveBack(connection);
      Duration pause = pacer.pause(floor.clock().nanoTime() - started);
      long leftNs = longest.toNanos() - (floor.clock().nanoTime() - started);
      floor.pause(pause.toNanos() < leftNs ? pause : Duration.ofNanos(Math.max(leftNs, 0)));
    }
  }
}
