package io.antipode;

/** What barriers do. */
public enum Mode {
  /** They wait. */
  ENFORCE,
  /** They wait for nothing and raise nothing; what is missing is noted. */
  DRY_RUN,
  /** They return at once; lineages are kept and sent all the same. */
  OFF
}
