package io.antipode;

/** Whether those who are called answer with lineages. */
public enum PeerAnswers {
  /** They do: an answer without one lost it. */
  ALWAYS,
  /** They do not: what becomes of a call leaves no mark. */
  NEVER,
  /** It is learnt from their answers. */
  AUTO
}
