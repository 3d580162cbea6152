package io.antipode.mysql;

import io.antipode.lineage.WriteId;

/**
 * Where a replica gets its writes from.
 *
 * @param host as the replica reaches it
 * @param log the log's own server: MySQL's UUID, MariaDB's id; empty before the first connection
 * @param received what has come of each log, and may not be applied yet
 * @param trouble what replication says is wrong; empty where nothing is
 * @param isConnected whether the replica is connected to it
 */
record Source(
    String host, int port, String log, Received received, String trouble, boolean isConnected) {
  /** What a replica has received. */
  sealed interface Received {
    /** Of MySQL. */
    record MySql(GtidSet set) implements Received {}

    /** Of MariaDB. */
    record MariaDb(MariaDbState state) implements Received {}
  }

  /**
   * Returns whether a write is on its way: its own server is the source, or it has been received.
   */
  boolean brings(WriteId write) {
    if (received instanceof Received.MySql mysql) {
      MySqlLog named = MySqlLog.of(write.key());
      return named != null
          && (mysql.set.contains(named.log(), write.version(), write.version())
              || named.log().equals(log)
              || named.log().startsWith(log + ":"));
    }
    MariaDbState.Log named = MariaDbState.Log.of(write.key());
    return named != null
        && received instanceof Received.MariaDb mariadb
        && (Long.toString(named.server()).equals(log)
            || mariadb.state.reaches(named, write.version()));
  }
}
