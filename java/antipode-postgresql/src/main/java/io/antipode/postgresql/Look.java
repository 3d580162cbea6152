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

  /** How often the server flushes what was committed without waiting for that. */
  static final String WRITER_DELAY =
      "SELECT setting AS ms FROM pg_settings WHERE name = 'wal_writer_delay'";

  private static final String SYNCHRONOUS =
      " AS xid, current_setting('synchronous_commit') AS synchronous";

  /** What is asked before it: whether the transaction wrote, and whether its commit is flushed. */
  static final String BEFORE_COMMIT = "SELECT pg_current_xact_id_if_assigned()" + SYNCHRONOUS;

  /**
   * The same of one that seems to have changed temporary tables alone: without an id where it has.
   * Its locks are kept until its end, but for those on most catalogs, of which the server counts
   * the rows that were changed. Those that are named are changed where a table is made.
   */
  static final String BEFORE_TEMPORARY =
      "SELECT CASE WHEN current_setting('track_counts') <> 'on'"
          + " OR EXISTS (SELECT FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation"
          + " WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'"
          + " AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')"
          + " AND c.relpersistence IS DISTINCT FROM 't')"
          + " OR EXISTS (SELECT FROM pg_class WHERE oid < 16384 AND relkind = 'r'"
          + " AND relname NOT IN ('pg_attrdef', 'pg_attribute', 'pg_class', 'pg_constraint',"
          + " 'pg_depend', 'pg_index', 'pg_namespace', 'pg_sequence', 'pg_shdepend',"
          + " 'pg_statistic', 'pg_trigger', 'pg_type')"
          + " AND pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)"
          + " + pg_stat_get_xact_tuples_deleted(oid) > 0)"
          + " THEN pg_current_xact_id_if_assigned() END"
          + SYNCHRONOUS;

  /** Whether this user may ask that. */
  static final String SEES_LOCKS =
      "SELECT has_table_privilege('pg_locks', 'select')"
          + " AND has_table_privilege('pg_class', 'select') AS may";

  /** The isolation of the open transaction: the one question that takes no snapshot. */
  static final String ISOLATION = "SHOW transaction_isolation";

  /**
   * What may write and does not look like it, each with its kind. {@code call}: functions of the
   * application's with the name of one of the server's, or with a word of the grammar. {@code
   * word}: functions that an attribute of a row may stand for, and relations and types that use a
   * function of the application's. {@code any}: operators and casts do, which have no name in a
   * statement. Functions in C are an extension's there.
   */
  private static final String WRITING =
      """
      SELECT q.kind, q.name FROM (
      WITH RECURSIVE own AS (
        SELECT p.oid, p.proname, p.prolang, p.proargtypes FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.oid >= 16384 AND p.prorettype <> 'trigger'::regtype AND lower(p.proname) NOT IN (%s)
        AND lower(n.nspname || '.' || p.proname) NOT IN (%s)
      ), spread(class, oid) AS (
        SELECT 'pg_proc'::regclass::oid, o.oid FROM own o JOIN pg_language l ON l.oid = o.prolang
        WHERE l.lanname NOT IN ('c', 'internal')
        UNION SELECT e.class, e.oid FROM spread s CROSS JOIN LATERAL (
          SELECT d.classid AS class, d.objid AS oid FROM pg_depend d
          WHERE d.refclassid = s.class AND d.refobjid = s.oid AND d.classid IN (
            'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_cast'::regclass, 'pg_amproc'::regclass,
            'pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_constraint'::regclass,
            'pg_type'::regclass, 'pg_class'::regclass)
          UNION ALL SELECT 'pg_class'::regclass, r.ev_class FROM pg_rewrite r
          WHERE s.class = 'pg_rewrite'::regclass AND r.oid = s.oid
          UNION ALL SELECT 'pg_class'::regclass, p.polrelid FROM pg_policy p
          WHERE s.class = 'pg_policy'::regclass AND p.oid = s.oid
          UNION ALL SELECT 'pg_type'::regclass, c.contypid FROM pg_constraint c
          WHERE s.class = 'pg_constraint'::regclass AND c.oid = s.oid AND c.contypid <> 0
          UNION ALL SELECT 'pg_type'::regclass, c.reltype FROM pg_class c
          WHERE s.class = 'pg_class'::regclass AND c.oid = s.oid AND c.reltype <> 0
        ) e
      )
      SELECT 'call' AS kind, lower(o.proname) AS name FROM own o
      WHERE o.proname IN (SELECT p.proname FROM pg_proc p WHERE NOT p.oid >= 16384)
      OR o.proname IN (SELECT k.word FROM pg_get_keywords() k)
      UNION SELECT 'word', lower(o.proname) FROM own o JOIN pg_type t ON t.oid = o.proargtypes[0]
      WHERE t.typtype IN ('c', 'd', 'p')
      UNION SELECT 'word', lower(c.relname) FROM spread s JOIN pg_class c ON c.oid = s.oid
      WHERE s.class = 'pg_class'::regclass AND c.relkind NOT IN ('i', 'I', 't')
      UNION SELECT 'word', lower(t.typname) FROM spread s JOIN pg_type t ON t.oid = s.oid
      WHERE s.class = 'pg_type'::regclass
      UNION SELECT 'any', '' FROM spread s
      WHERE s.class IN ('pg_operator'::regclass, 'pg_cast'::regclass, 'pg_amproc'::regclass)
      ) AS q
      """;

  /** Which of some names are of functions that may write. */
  private static final String FUNCTIONS =
      "SELECT DISTINCT p.proname AS name FROM pg_proc p WHERE p.proname IN (%s)"
          + " AND (p.oid >= 16384 OR p.provolatile = 'v' OR p.proname ~ '_to_xml')";

  /**
   * Names of foreign tables, of their parents and of views of these, and whether they lie on this
   * server; an empty name where functions of dblink are there.
   */
  static final String ELSEWHERE =
      """
      WITH RECURSIVE foreigners AS (
        SELECT f.ftrelid AS oid, coalesce((SELECT substr(o, 6) FROM unnest(s.srvoptions) AS o
        WHERE o LIKE 'port=%'), '5432') = current_setting('port')
        AND coalesce((SELECT substr(o, 6) FROM unnest(s.srvoptions) AS o WHERE o LIKE 'host=%'), '')
        IN ('', 'localhost', '127.0.0.1', '::1', coalesce(host(inet_server_addr()), '')) AS here
        FROM pg_foreign_table f JOIN pg_foreign_server s ON s.oid = f.ftserver
      ), spread AS (
        SELECT oid, here FROM foreigners UNION SELECT p.oid, s.here FROM spread s
        JOIN LATERAL (
          SELECT i.inhparent AS oid FROM pg_inherits i WHERE i.inhrelid = s.oid
          UNION ALL SELECT r.ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
          WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
          AND d.refobjid = s.oid AND r.ev_class <> s.oid
        ) AS p ON true
      )
      SELECT lower(c.relname::text) AS name, s.here FROM spread s JOIN pg_class c ON c.oid = s.oid
      UNION ALL SELECT '', true WHERE EXISTS (SELECT FROM pg_proc
      WHERE proname = 'dblink_exec' AND probin LIKE '%dblink')
      """;

  private Look() {}

  /** Returns the question whether the server has a process of this number for this database. */
  static String present(String backend) {
    return "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = "
        + backend
        + " AND datname = current_database()) AS present";
  }

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
   * Whether it is on the next timeline already, and where that is left, is asked of standbys that
   * have its history.
   */
  static String sql(Rights rights) {
    return "SELECT p.*, "
        + moving(rights.received(NUMBER + "1", "p.position"))
        + " AS follows, "
        + moving(rights.history(NUMBER + "2"))
        + " AS later FROM (SELECT p.*, "
        + rights.history(NUMBER + "0")
        + " AS history, "
        + rights.history(NUMBER + "1")
        + " AS next, '"
        + rights.word()
        + "' AS rights FROM ("
        + PLACE
        + ") AS p OFFSET 0) AS p";
  }

  private static String moving(String asked) {
    return "CASE WHEN p.recovering AND p.next IS NOT NULL THEN " + asked + " END";
  }

  /** Returns the question by what a read may write, but for functions that write nothing. */
  static String writing(Collection<String> readonly) {
    String names =
        Stream.concat(Stream.of(""), readonly.stream().sorted())
            .map(name -> "'" + name.toLowerCase(Locale.ROOT).replace("'", "''") + "'")
            .collect(Collectors.joining(", "));
    return WRITING.replace("%s", names);
  }

  /** Returns the question which functions of these names, all plain, may write. */
  static String functions(Collection<String> names) {
    return FUNCTIONS.replace(
        "%s",
        names.stream()
            .sorted()
            .map(name -> "'" + name + "'::name")
            .collect(Collectors.joining(", ")));
  }
}
