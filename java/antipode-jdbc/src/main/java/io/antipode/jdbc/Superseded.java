package io.antipode.jdbc;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Which stored items a lineage supersedes, as a pattern for the server.
 *
 * <p>A row is updated again and again for causes that move along a few logs: what merges there
 * should be one item for each log. The server cannot compare lineages, but replaces by regular
 * expressions; so a writer sends a pattern that finds the items that need not be kept where its own
 * lineage is: positions of the same logs that are no later, and all else that it says word for
 * word. It has what MariaDB's, MySQL's and PostgreSQL's expressions share, and no backslash, which
 * SQL modes would read differently.
 */
public final class Superseded {
  private static final String WRITES = "urkURK";
  private static final String AGE = "(?:[0-9a-z]*-)?";
  private static final String DIGIT = "[0-9a-z]";

  /** Begins an item that carries a text of another version, whose parts resemble items. */
  private static final String CARRIED = "~z";

  /** MariaDB's library compiles none to more than 65,535 bytes, a third of which are these. */
  private static final int LONGEST = 16_000;

  /** Of a kind and a datastore the logs, and what finds the positions with them. */
  private record Logs(List<String> keys, List<String> positions) {}

  private Superseded() {}

  /**
   * Returns the pattern for the items that need not be kept where a text is; empty for none.
   *
   * @param text of version 1 of the format
   */
  public static String pattern(String text) {
    if (text.contains(CARRIED)) {
      return "";
    }
    List<String> found = new ArrayList<>();
    Map<String, Logs> heads = new LinkedHashMap<>();
    int left = LONGEST;
    String[] items = text.split("~", -1);
    for (int nth = 1; nth < items.length && left >= 0; nth++) {
      left -= add(items[nth], found, heads, left);
    }
    heads.forEach(
        (head, logs) ->
            found.add(
                head
                    // The logs first, though they come last: of any other log the server would try
                    // all positions, digit by digit.
                    + "[.](?=[^.]*[.](?:"
                    + String.join("|", logs.keys)
                    + ")(?:[~,]|$))(?:"
                    + String.join("|", logs.positions)
                    + ")"));
    return found.isEmpty() ? "" : "~(?:" + String.join("|", found) + ")(?=[~,]|$)";
  }

  /** Adds what finds one item, where there is room; returns how much that takes. */
  private static int add(String item, List<String> found, Map<String, Logs> heads, int room) {
    if (WRITES.indexOf(item.charAt(0)) < 0) {
      String alone = literal(item);
      if (alone.length() <= room) {
        found.add(alone);
      }
      return alone.length();
    }
    String[] fields = item.split("\\.", 3);
    String stamp = fields[1];
    if (stamp.charAt(0) != '_' && stamp.indexOf('-') >= 0) {
      stamp = stamp.substring(stamp.indexOf('-') + 1);
    }
    String log = literal(fields[2]);
    String version = stamp.charAt(0) == '_' ? stamp : atMost(stamp);
    String position = AGE + version + "[.]" + log;
    int size = fields[0].length() + log.length() + position.length();
    if (size <= room) {
      Logs logs =
          heads.computeIfAbsent(fields[0], head -> new Logs(new ArrayList<>(), new ArrayList<>()));
      logs.keys.add(log);
      logs.positions.add(position);
    }
    return size;
  }

  private static String literal(String text) {
    return text.replace(".", "[.]");
  }

  /** Returns what finds the numbers in base 36 up to one; they have no leading zeros. */
  private static String atMost(String number) {
    int rest = number.length() - 1;
    List<String> smaller = new ArrayList<>();
    if (rest > 0) {
      smaller.add(DIGIT + "{1," + rest + "}");
    }
    for (int at = 0; at <= rest; at++) {
      char digit = number.charAt(at);
      if (digit != '0') {
        String behind = at < rest ? DIGIT + "{" + (rest - at) + "}" : "";
        smaller.add(number.substring(0, at) + below(digit) + behind);
      }
    }
    smaller.add(number);
    return "(?:" + String.join("|", smaller) + ")";
  }

  private static String below(char digit) {
    char last = (char) (digit - 1);
    if (digit <= '9') {
      return "[0-" + last + "]";
    }
    return digit == 'a' ? "[0-9]" : "[0-9a-" + last + "]";
  }
}
