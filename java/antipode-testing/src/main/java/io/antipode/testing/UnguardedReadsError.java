package io.antipode.testing;

/** Reads of a class of tests lack barriers; the message names them, and where they are. */
public final class UnguardedReadsError extends AssertionError {
  UnguardedReadsError(String message) {
    super(message);
  }
}
