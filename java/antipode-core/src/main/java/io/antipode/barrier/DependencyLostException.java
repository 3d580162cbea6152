package io.antipode.barrier;

/** A dependency is proved gone, or its promise was abandoned: waiting longer cannot help. */
public final class DependencyLostException extends UnmetException {
  private static final long serialVersionUID = 1L;

  DependencyLostException(String message, BarrierResult result) {
    super("dependency_lost", message, result);
  }
}
