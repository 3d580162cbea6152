package io.antipode.barrier;

/** Which of the servers of a datastore this process reads from. */
public enum ReadsFrom {
  /** The server that takes writes. */
  PRIMARY,
  /** A copy. */
  REPLICA
}
