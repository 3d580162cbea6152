package io.antipode.postgresql;

import java.util.Locale;
import java.util.Map;

/** How a user may learn of timelines. */
enum Rights {
  /** Not at all. */
  NONE("NULL", "NULL"),
  /** Which one a standby receives. */
  STREAM("NULL", "NULL"),
  /** Their histories, from files. */
  FILES(
      "pg_read_file('pg_wal/' || lpad(upper(to_hex(%s)), 8, '0') || '.history', 0, 65536, true)",
      "(pg_read_file('pg_wal/' || lpad(upper(to_hex(%s)), 8, '0')"
          + " || lpad(upper(to_hex(div(%p - '0/0' - 1, 4294967296)::bigint)), 8, '0')"
          + " || lpad(upper(to_hex(div(mod(%p - '0/0' - 1, 4294967296),"
          + " pg_size_bytes(current_setting('wal_segment_size')))::bigint)), 8, '0'),"
          + " 0, 0, true) IS NOT NULL)"),
  /** Their histories, by the migration's functions. */
  FUNCTION("antipode_history(%s)", "antipode_received(%s, %p)");

  /** The question for them. */
  static final String QUESTION =
      "SELECT has_function_privilege('pg_read_file(text,bigint,bigint,boolean)', 'execute') AS"
          + " files, coalesce(has_function_privilege(to_regprocedure('antipode_history(integer)'),"
          + " 'execute') AND has_function_privilege("
          + "to_regprocedure('antipode_received(integer,pg_lsn)'), 'execute'), false)"
          + " AS function, pg_has_role('pg_read_all_stats', 'usage') AS stream";

  private final String history;
  private final String received;

  Rights(String history, String received) {
    this.history = history;
    this.received = received;
  }

  /** Returns what shows the history of a timeline of a number. */
  String history(String number) {
    return history.replace("%s", number);
  }

  /**
   * Returns what shows whether a server has the segment of a timeline in which a place is: a
   * standby receives one of the next timeline, or restores it, once it follows that, and not while
   * it cannot.
   */
  String received(String number, String place) {
    return received.replace("%s", number).replace("%p", place);
  }

  boolean readsHistories() {
    return this == FILES || this == FUNCTION;
  }

  /** Returns how they are called in questions. */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  static Rights of(String word) {
    for (Rights each : values()) {
      if (each.word().equals(word)) {
        return each;
      }
    }
    return NONE;
  }

  /** Returns the most of what a server answered to the question. */
  static Rights granted(Map<String, String> row) {
    Rights most = NONE;
    for (Rights each : values()) {
      if (row.getOrDefault(each.word(), "").equals("t")) {
        most = each;
      }
    }
    return most;
  }
}
