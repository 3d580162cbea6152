package io.antipode.mysql;

import io.antipode.lineage.WriteId;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What one server has. */
sealed interface ServerState {
  boolean isWritable();

  /**
   * Returns whether a write is visible there.
   *
   * @param isReplica whether the server may follow another
   */
  boolean has(WriteId write, boolean isReplica);

  /** Returns whether anything of a write's log is in the history. */
  boolean knows(WriteId write);

  /** Returns whether a key and version may be of a log of this kind of server. */
  boolean isOfLog(WriteId write);

  /** Returns whether the history went on without a write for good. */
  boolean excludes(WriteId write);

  /** Returns how far it is on the way to a write, for people. */
  String at(WriteId write);

  /** Returns whether nothing is gone that it had in an earlier state. */
  boolean covers(ServerState earlier);

  /**
   * A server of MySQL.
   *
   * @param executed its {@code gtid_executed}, purged ones included
   */
  record MySql(GtidSet executed, boolean isWritable) implements ServerState {
    @Override
    public boolean has(WriteId write, boolean isReplica) {
      MySqlLog log = MySqlLog.of(write.key());
      return log != null
          && write.opaqueVersion() == null
          && executed.contains(log.log(), log.first(), write.version());
    }

    @Override
    public boolean knows(WriteId write) {
      MySqlLog log = MySqlLog.of(write.key());
      return log != null && executed.logs().containsKey(log.log());
    }

    @Override
    public boolean isOfLog(WriteId write) {
      return write.opaqueVersion() == null && MySqlLog.of(write.key()) != null;
    }

    @Override
    public boolean excludes(WriteId write) {
      return false;
    }

    @Override
    public String at(WriteId write) {
      MySqlLog log = MySqlLog.of(write.key());
      if (log == null) {
        return "0";
      }
      return executed.logs().getOrDefault(log.log(), List.of()).stream()
          .filter(run -> run.contains(log.first(), log.first()))
          .map(run -> Long.toUnsignedString(run.last()))
          .findFirst()
          .orElse("0");
    }

    @Override
    public boolean covers(ServerState earlier) {
      return earlier instanceof MySql other && executed.covers(other.executed);
    }
  }

  /**
   * A server of MariaDB.
   *
   * @param applied its {@code gtid_slave_pos}
   * @param logged its {@code gtid_binlog_state}
   * @param isStrict whether the numbers of a domain only rise there
   */
  record MariaDb(
      MariaDbState applied,
      MariaDbState logged,
      boolean isWritable,
      long serverId,
      boolean isStrict)
      implements ServerState {
    private static MariaDbState.@Nullable Log log(WriteId write) {
      return write.opaqueVersion() == null ? MariaDbState.Log.of(write.key()) : null;
    }

    @Override
    public boolean has(WriteId write, boolean isReplica) {
      MariaDbState.Log log = log(write);
      if (log == null) {
        return false;
      }
      if (applied.reaches(log, write.version())) {
        return true;
      }
      // A replica logs before it commits, so there the position has to be past the number, too.
      boolean isOwn = !isReplica || log.server() == serverId;
      return logged.reaches(log, write.version())
          && (isOwn || applied.isPast(log.domain(), write.version()));
    }

    @Override
    public boolean knows(WriteId write) {
      MariaDbState.Log log = log(write);
      return log != null && (logged.knows(log) || applied.knows(log));
    }

    @Override
    public boolean isOfLog(WriteId write) {
      return log(write) != null;
    }

    @Override
    public boolean excludes(WriteId write) {
      MariaDbState.Log log = log(write);
      return log != null
          && isStrict
          && knows(write)
          && !logged.reaches(log, write.version())
          && !applied.reaches(log, write.version())
          && logged.isPast(log.domain(), write.version());
    }

    @Override
    public String at(WriteId write) {
      MariaDbState.Log log = log(write);
      Long highest = log == null ? null : applied.highest(log.domain());
      return highest == null ? "0" : Long.toUnsignedString(highest);
    }

    @Override
    public boolean covers(ServerState earlier) {
      return earlier instanceof MariaDb other
          && logged.covers(other.logged)
          && applied.coversDomains(other.applied);
    }
  }
}
