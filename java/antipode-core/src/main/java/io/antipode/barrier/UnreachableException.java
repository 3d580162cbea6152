package io.antipode.barrier;

import org.jspecify.annotations.Nullable;

/** A poll failed in a way that a later one may not: refused, reset, timed out, loading. */
public final class UnreachableException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Says what failed. */
  public UnreachableException(String message) {
    super(message);
  }

  /** Says what failed, and why. */
  public UnreachableException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
