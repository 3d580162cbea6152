package io.antipode.lineage;

import io.antipode.AntipodeException;

/** A bound has no room for the mark that says what is missing. */
public final class LineageTooLargeException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  LineageTooLargeException(int maxBytes) {
    super(
        "lineage_too_large",
        "no lineage fits in " + maxBytes + " bytes, \"antipode=\" included; allow at least 18");
  }
}
