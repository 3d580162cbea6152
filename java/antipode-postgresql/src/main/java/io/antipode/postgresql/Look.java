package io.antipode.postgresql;

import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What is asked of a server: its place in the log, its history, what a commit came to. */
final class Look {
  /**
   * Columns in the order in which they are evaluated: the position before what it is judged by.
   * Whether the server recovers is asked once: a promotion may come in between.
   */
  private static final String PLACE =
      "SELECT r AS recovering,"
          + " CASE WHEN r THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END AS"
          + " position,"
          + " CASE WHEN r THEN greatest((SELECT timeline_id FROM pg_control_checkpoint()),"
          + " (SELECT min_recovery_end_timeline FROM pg_control_recovery()))::text"
          + " ELSE left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) END AS timeline,"
          + " (SELECT system_identifier FROM pg_control_system()) AS system,"
          + " extract(epoch FROM pg_postmaster_start_time())::text AS started,"
          + " pg_backend_pid() AS backend,"
          + " EXISTS (SELECT FROM pg_stat_wal_receiver) AS receiving,"
          + " (SELECT received_tli FROM pg_stat_wal_receiver WHERE status = 'streaming') AS received"
          + " FROM (SELECT pg_is_in_recovery() AS r) AS s OFFSET 0";

  private static final String NUMBER =
      "CASE WHEN p.recovering THEN p.timeline::int"
          + " ELSE ('x' || p.timeline)::bit(32)::int END + ";

  /** What is asked after a commit, in the same packet where that is possible. */
  static final String SAMPLE =
      "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END AS"
          + " flushed,"
          + " CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_insert_lsn() END AS"
          + " inserted,"
          + " extract(epoch FROM pg_postmaster_start_time())::text AS started,"
          + " current_setting('synchronous_commit') AS synchronous";

  /** What is asked before it: whether the transaction wrote, and whether its commit is flushed. */
  static final String BEFORE_COMMIT =
      "SELECT pg_current_xact_id_if_assigned() AS xid,"
          + " current_setting('synchronous_commit') AS synchronous";

  /** The isolation of the open transaction: the one question that takes no snapshot. */
  static final String ISOLATION = "SHOW transaction_isolation";

  /**
   * What a plain SELECT may write by, and its text does not show: views, and views of them, that
   * use functions of the application's; the empty name, which is in each text, stands for
   * operators, casts, conditions of domains and policies that do. Functions in C are an
   * extension's.
   */
  private static final String HIDDEN =
      "SELECT q.name FROM (WITH RECURSIVE own AS (SELECT p.oid FROM pg_proc p JOIN pg_language l"
          + " ON l.oid = p.prolang WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')"
          + " AND lower(p.proname) NOT IN (%s)),"
          + " uses AS (SELECT d.classid, d.objid FROM pg_depend d JOIN own ON d.refobjid = own.oid"
          + " WHERE d.refclassid = 'pg_proc'::regclass), spread AS (SELECT classid, objid FROM uses"
          + " UNION SELECT d.classid, d.objid FROM pg_depend d JOIN uses u ON d.refclassid ="
          + " u.classid AND d.refobjid = u.objid WHERE u.classid IN ('pg_operator'::regclass,"
          + " 'pg_cast'::regclass)),"
          + " views AS (SELECT r.ev_class FROM pg_rewrite r JOIN spread s ON s.objid = r.oid"
          + " AND s.classid = 'pg_rewrite'::regclass UNION SELECT r.ev_class FROM views v"
          + " JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = v.ev_class"
          + " AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite r ON r.oid = d.objid)"
          + " SELECT lower(c.relname::text) AS name FROM views v JOIN pg_class c ON c.oid ="
          + " v.ev_class UNION SELECT '' FROM spread s LEFT JOIN pg_constraint c ON c.oid = s.objid"
          + " AND s.classid = 'pg_constraint'::regclass WHERE s.classid IN ('pg_operator'::regclass,"
          + " 'pg_cast'::regclass, 'pg_policy'::regclass) OR c.contypid <> 0) AS q";

  private Look() {}

  /** Returns what is asked on another connection: whether a transaction has no snapshot. */
  static String unread(Backend backend) {
    return String.format(
        Locale.ROOT,
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND client_addr = inet '%s'"
            + " AND client_port = %d AND state = 'idle in transaction' AND backend_xmin IS NULL)"
            + " AS unread",
        backend.process(),
        backend.host(),
        backend.port());
  }

  /** Returns whether a commit waits until it is flushed, as {@link #SAMPLE} and others answer. */
  static boolean isFlushed(Map<String, String> row) {
    return !row.getOrDefault("synchronous", "").equals("off");
  }

  /**
   * Returns what one poll asks of a server of whose timelines a user with such rights may learn.
   */
  static String sql(Rights rights) {
    return "SELECT p.*, "
        + rights.history(NUMBER + "0")
        + " AS history, "
        + rights.history(NUMBER + "1")
        + " AS next, '"
        + rights.word()
        + "' AS rights FROM ("
        + PLACE
        + ") AS p";
  }

  /**
   * Returns the question by what a plain SELECT may write, but for functions that write nothing.
   */
  static String hidden(Collection<String> readonly) {
    return HIDDEN.replace(
        "%s",
        Stream.concat(Stream.of(""), readonly.stream().sorted())
            .map(name -> name.substring(name.lastIndexOf('.') + 1).toLowerCase(Locale.ROOT))
            .map(name -> "'" + name.replace("'", "''") + "'")
            .collect(Collectors.joining(", ")));
  }
}
