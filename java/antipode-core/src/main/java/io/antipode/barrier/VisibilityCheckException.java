package io.antipode.barrier;

/** Whether a dependency is visible cannot be decided, or the check itself failed. */
public final class VisibilityCheckException extends UnmetException {
  private static final long serialVersionUID = 1L;

  VisibilityCheckException(String message, BarrierResult result) {
    super("visibility_check", message, result);
  }
}
