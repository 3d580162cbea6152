package io.antipode.lineage;

import io.antipode.AntipodeException;

/**
 * A text is no lineage. The code is one of {@code lineage_too_long}, {@code lineage_alphabet},
 * {@code lineage_header}, {@code lineage_too_many} and {@code lineage_item}.
 */
public final class LineageDecodeException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  private final int offset;

  LineageDecodeException(String code, String reason, int offset) {
    super(code, "not a lineage: " + reason + ", at character " + offset);
    this.offset = offset;
  }

  /** Returns where in the text the fault is, counted in {@code char}s. */
  public int offset() {
    return offset;
  }
}
