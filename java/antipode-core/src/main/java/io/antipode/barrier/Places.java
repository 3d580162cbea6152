package io.antipode.barrier;

import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * How many connections of one pool reads that wait may keep: half of them, and at least one. A pool
 * of one connection, and one without a limit, has a place for every read. Thread-safe.
 */
public final class Places {
  private final IntSupplier size;

  /** Of the pool, where this is of one connection, which keeps one place for all of its reads. */
  private final @Nullable Places pool;

  private int taken;

  private Places(IntSupplier size, @Nullable Places pool) {
    this.size = size;
    this.pool = pool;
  }

  /** Returns the places of a pool of so many connections; 0 for no limit, or none that is known. */
  public static Places of(IntSupplier size) {
    return new Places(size, null);
  }

  /** Returns them for one connection of the pool, of which many reads may wait at once. */
  public Places ofConnection() {
    return new Places(size, this);
  }

  /** Keeps a connection, if there is a place for that. */
  synchronized boolean take() {
    if (pool == null ? isFull() : taken == 0 && !pool.take()) {
      return false;
    }
    taken++;
    return true;
  }

  private boolean isFull() {
    int connections = size.getAsInt();
    return connections > 1 && taken >= connections / 2;
  }

  /** Keeps it no longer. */
  synchronized void giveBack() {
    taken--;
    if (pool != null && taken == 0) {
      pool.giveBack();
    }
  }
}
