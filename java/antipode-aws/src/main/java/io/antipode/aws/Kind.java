package io.antipode.aws;

/** What an operation means for a lineage. */
public enum Kind {
  READ,
  WRITE,
  /** In no list, or a statement: it may write. */
  UNKNOWN,
  NEITHER;

  /** Returns whether a call of it may have written something. */
  public boolean mayWrite() {
    return this == WRITE || this == UNKNOWN;
  }
}
