package io.antipode.postgresql;

/** A text is no position of a log. */
final class NoLsnException extends Exception {
  private static final long serialVersionUID = 1L;

  NoLsnException(String message) {
    super(message);
  }
}
