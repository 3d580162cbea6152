package io.antipode.mysql;

/** A server answered with an error, or the server above it could not be asked. */
final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final int number;
  private final boolean isPassing;

  private RefusedException(String message, int number, boolean isPassing) {
    super(message);
    this.number = number;
    this.isPassing = isPassing;
  }

  /** Returns an answer that asking again does not change. */
  static RefusedException lasting(String message, int number) {
    return new RefusedException(message, number, false);
  }

  /** Returns what a server was not asked for now, and may be later. */
  static RefusedException passing(String message) {
    return new RefusedException(message, 0, true);
  }

  /** Returns the server's number of the error; 0 where it has none. */
  int number() {
    return number;
  }

  boolean isPassing() {
    return isPassing;
  }
}
