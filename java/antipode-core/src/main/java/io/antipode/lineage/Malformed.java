package io.antipode.lineage;

/** A part of a text does not follow the grammar. */
final class Malformed extends Exception {
  private static final long serialVersionUID = 1L;

  Malformed(String reason) {
    super(reason, null, false, false);
  }
}
