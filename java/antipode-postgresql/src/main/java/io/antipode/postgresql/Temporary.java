package io.antipode.postgresql;

import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a connection's transactions change of its own temporary tables. Whether they changed
 * anything else is the server's word, with the commit: what is known here only decides whether it
 * is asked.
 */
final class Temporary {
  /** Within so many characters a statement says that it makes one. */
  private static final int HEAD = 64;

  /** How many names are remembered. */
  private static final int MOST = 64;

  private static final Pattern MADE =
      Pattern.compile(
          "\\s*CREATE\\s+(?:LOCAL\\s+|GLOBAL\\s+)?TEMP(?:ORARY)?\\s+TABLE\\s+"
              + "(?:IF\\s+NOT\\s+EXISTS\\s+)?(?:pg_temp\\s*\\.\\s*)?\"?([\\w$]+)",
          Pattern.CASE_INSENSITIVE);

  /** In small letters. */
  private final Set<String> names = new HashSet<>();

  private boolean isAlone;

  /** Of a connection that may have a transaction open already, which changed others. */
  private boolean hasOthers = true;

  /** Returns whether all that the transaction has changed so far has the name of one. */
  boolean isAlone() {
    return isAlone;
  }

  /** No transaction is open. */
  void begins() {
    isAlone = false;
    hasOthers = false;
  }

  /** Notes a text that writes, by what it may do. */
  void writes(String sql, Set<Effect> effects) {
    if (names.isEmpty() && !mayMake(sql)) {
      others();
    } else if (effects.contains(Effect.SEVERAL) || effects.contains(Effect.COMMITS_INSIDE)) {
      others();
    } else {
      note(sql);
    }
  }

  /** Something is written of which nobody knows where. */
  void others() {
    hasOthers = true;
    isAlone = false;
  }

  private void note(String sql) {
    Matcher made = MADE.matcher(sql);
    if (made.lookingAt()) {
      if (names.size() >= MOST) {
        names.clear();
      }
      names.add(made.group(1).toLowerCase(Locale.ROOT));
    } else {
      Set<String> targets = Elsewhere.targets(sql);
      hasOthers |= targets.isEmpty() || !names.containsAll(targets);
    }
    isAlone = !hasOthers;
  }

  private static boolean mayMake(String sql) {
    int last = Math.min(sql.length(), HEAD) - "TEMP".length();
    for (int at = 0; at <= last; at++) {
      if (sql.regionMatches(true, at, "TEMP", 0, "TEMP".length())) {
        return true;
      }
    }
    return false;
  }
}
