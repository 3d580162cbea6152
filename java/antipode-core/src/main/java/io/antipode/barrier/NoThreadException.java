package io.antipode.barrier;

/** The system starts no further thread now: a limit of the process, or no memory. */
final class NoThreadException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  NoThreadException(String name, Throwable cause) {
    super("no thread " + name + ": " + cause.getMessage(), cause);
  }
}
