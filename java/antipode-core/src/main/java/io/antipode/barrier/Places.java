package io.antipode.barrier;

import java.util.function.IntSupplier;

/**
 * How many connections of one pool reads that wait may keep: half of them, and at least one. A pool
 * of one connection, and one without a limit, has a place for every read. Thread-safe.
 */
public final class Places {
  private final IntSupplier size;
  private int taken;

  private Places(IntSupplier size) {
    this.size = size;
  }

  /** Returns the places of a pool of so many connections; 0 for no limit, or none that is known. */
  public static Places of(IntSupplier size) {
    return new Places(size);
  }

  /** Keeps a connection, if there is a place for that. */
  synchronized boolean take() {
    int connections = size.getAsInt();
    if (connections > 1 && taken >= connections / 2) {
      return false;
    }
    taken++;
    return true;
  }

  /** Keeps it no longer. */
  synchronized void giveBack() {
    taken--;
  }
}
