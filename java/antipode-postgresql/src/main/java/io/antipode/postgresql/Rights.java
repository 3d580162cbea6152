package io.antipode.postgresql;

import java.util.Locale;
import java.util.Map;

/** How a user may learn of timelines. */
enum Rights {
  /** Not at all. */
  NONE("NULL"),
  /** Which one a standby receives. */
  STREAM("NULL"),
  /** Their histories, from files. */
  FILES("pg_read_file('pg_wal/' || lpad(upper(to_hex(%s)), 8, '0') || '.history', 0, 65536, true)"),
  /** Their histories, by the migration's function. */
  FUNCTION("antipode_history(%s)");

  /** The question for them. */
  static final String QUESTION =
      "SELECT has_function_privilege('pg_read_file(text,bigint,bigint,boolean)', 'execute') AS"
          + " files, coalesce(has_function_privilege(to_regprocedure('antipode_history(integer)'),"
          + " 'execute'), false) AS function, pg_has_role('pg_read_all_stats', 'usage') AS stream";

  private final String history;

  Rights(String history) {
    this.history = history;
  }

  /** Returns what shows the history of a timeline of a number. */
  String history(String number) {
    return history.replace("%s", number);
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
