package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.lineage.Promise;

/** A branch fulfils a promise that was abandoned: its transaction must not commit. */
public final class PromiseAbandonedException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** Says which promise it is. */
  public PromiseAbandonedException(Promise promise) {
    super("promise_abandoned", promise + " was abandoned: nothing was written");
  }
}
