package io.antipode.mysql;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What the key of a write to MySQL names.
 *
 * @param log {@code uuid} or {@code uuid:tag}
 * @param first the number from which on the version stands for a run; 1 but after a gap
 */
record MySqlLog(String log, long first) {
  private static final Pattern KEY =
      Pattern.compile("(" + GtidSet.UUID + "(?::" + GtidSet.TAG + ")?)(?:/([1-9][0-9]{0,18}))?");

  /** Returns what a key names; null where it is none of MySQL's. */
  static @Nullable MySqlLog of(String key) {
    Matcher match = KEY.matcher(key);
    if (!match.matches()) {
      return null;
    }
    return new MySqlLog(
        match.group(1), match.group(2) == null ? 1 : Long.parseUnsignedLong(match.group(2)));
  }

  String key() {
    return first == 1 ? log : log + "/" + Long.toUnsignedString(first);
  }
}
