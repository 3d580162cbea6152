package io.antipode.redis;

/** A server does not let this user ask for its position, or does not answer as Redis does. */
final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  RefusedException(String message) {
    super(message);
  }
}
