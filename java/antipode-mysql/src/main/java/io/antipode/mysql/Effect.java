package io.antipode.mysql;

/** What a statement may do. */
enum Effect {
  /** It may read data: a floor holds it back. */
  READS,
  /** It may change data. */
  WRITES,
  /** It may commit what is open, or what it does itself, whatever autocommit says. */
  COMMITS,
  /** It ends the open transaction where it succeeds. */
  ENDS,
  /** It opens a transaction. */
  BEGINS,
  /** It takes a snapshot at once. */
  SNAPSHOT,
  /** It may take a snapshot at once, although it shows nothing that anybody waits for. */
  MAY_SNAPSHOT,
  /** It locks what it reads, which takes no snapshot: but for views, triggers and functions. */
  LOCKS,
  /** It may change the isolation of this or later transactions. */
  ISOLATION,
  /** The isolation that it sets is, or may be, that of the next transaction alone. */
  NEXT_ONLY,
  /** It may change what the server says of the session. */
  TRACKING,
  /** Later writes of the session may get the numbers of another server. */
  NUMBERS,
  /** From now on the session's writes are in the binary log. */
  LOGGED,
  /** From now on the session's writes may not be in the binary log, and so not be replicated. */
  UNLOGGED,
  /** It is a step of two phases, after which the end is in others' hands. */
  TWO_PHASES,
  /** It calls a function that may not be built in, and so may write. */
  CALLS,
  /** It changes which temporary tables there are, or what names mean. */
  NAMES,
  /** Several statements: the others say nothing of their order. */
  SEVERAL
}
