package io.antipode.postgresql;

/** What a statement may do. */
enum Effect {
  /** It reads data: a floor holds it back. */
  READS,
  /** It changes data. */
  WRITES,
  /** It calls what may write, for all that is known. */
  CALLS,
  /** It begins a transaction. */
  BEGINS,
  /** It commits what is open. */
  COMMITS,
  /** It ends the open transaction. */
  ENDS,
  /** It leaves the end of the transaction to others. */
  TWO_PHASES,
  /** It may commit within itself, so that an error leaves something committed. */
  COMMITS_INSIDE,
  /** It reads from the snapshot of its cursor, which was taken when that was declared. */
  FETCHES,
  /** It changes the isolation of transactions. */
  ISOLATION,
  /** Several statements, in an order that nobody notes. */
  SEVERAL,
  /** It declares a cursor, whose snapshot is of now. */
  DECLARES,
  /** That cursor outlasts its transaction. */
  HOLDS,
  /** It takes a snapshot that another transaction has, however old that is. */
  IMPORTS,
  /** It sends what may write to another server, by dblink; no text shows that alone. */
  SENDS
}
