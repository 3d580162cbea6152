package io.antipode;

import java.util.Objects;

/** The root of the library's errors. Each has a stable code; messages may change. */
public class AntipodeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String code;

  /** Makes an error of a code of the specification. */
  protected AntipodeException(String code, String message) {
    super(message);
    this.code = Objects.requireNonNull(code, "code");
  }

  /** Returns the code of the error, spelled alike in every language. */
  public final String code() {
    return code;
  }
}
