package io.antipode.barrier;

/** The lineage is known to miss dependencies, so its visibility proves too little. */
public final class IncompleteLineageException extends UnmetException {
  private static final long serialVersionUID = 1L;

  IncompleteLineageException(String message, BarrierResult result) {
    super("incomplete_lineage", message, result);
  }
}
