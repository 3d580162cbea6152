package io.antipode.barrier;

/** The deadline passed while a dependency was not yet visible, or its server unreachable. */
public final class BarrierTimeoutException extends UnmetException {
  private static final long serialVersionUID = 1L;

  BarrierTimeoutException(String message, BarrierResult result) {
    super("barrier_timeout", message, result);
  }
}
