package io.antipode;

/** What a read does that automatic barriers hold back in vain. */
public enum OnStale {
  /** It is answered with what there is, and counted. */
  SERVE,
  /** It throws the error of a barrier. */
  RAISE,
  /** It is made at the primary, where its client has one, and throws otherwise. */
  PRIMARY
}
