package io.antipode;

/** What a read does that automatic barriers hold back in vain. */
public enum OnStale {
  /** It is answered with what there is, and counted. */
  SERVE,
  /** It throws the error of a barrier. */
  RAISE
}
