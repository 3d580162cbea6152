package io.antipode.postgresql;

/** A server answered with an error that asking again does not change. */
final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String state;

  /**
   * Says what the server said.
   *
   * @param state the error's SQLSTATE; empty for none
   */
  RefusedException(String message, String state) {
    super(message);
    this.state = state;
  }

  String state() {
    return state;
  }
}
