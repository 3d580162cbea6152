package io.antipode.postgresql;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One timeline of one system. After a promotion the log goes on in a new one, which branches off at
 * its fork: the positions above it are given again.
 *
 * @param system PostgreSQL's system identifier, in digits
 * @param fork where it branched off from the one before; 0 for the first
 */
record Log(String system, int timeline, long fork) {
  private static final Pattern KEY =
      Pattern.compile("([1-9][0-9]{0,19})/([1-9][0-9]{0,9})-(0|[1-9][0-9]{0,19})");

  /** Returns the log that a key names; null where it names none. */
  static @Nullable Log of(String key) {
    Matcher found = KEY.matcher(key);
    if (!found.matches()) {
      return null;
    }
    try {
      return new Log(
          found.group(1), Integer.parseInt(found.group(2)), Long.parseUnsignedLong(found.group(3)));
    } catch (NumberFormatException tooLarge) {
      return null;
    }
  }

  /** Returns what its writes have as their key. */
  String key() {
    return system + "/" + timeline + "-" + Long.toUnsignedString(fork);
  }
}
