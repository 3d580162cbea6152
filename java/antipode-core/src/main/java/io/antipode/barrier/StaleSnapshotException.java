package io.antipode.barrier;

import io.antipode.AntipodeException;

/** A read would come from a snapshot that is older than what a barrier waited for. */
public final class StaleSnapshotException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** Makes one that says what took the snapshot, and what to do. */
  public StaleSnapshotException(String message) {
    super("stale_snapshot", message);
  }
}
