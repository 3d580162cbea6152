package io.antipode.mysql;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A {@code gtid_binlog_state} or a position of MariaDB.
 *
 * @param last of each log the last sequence number, unsigned
 */
record MariaDbState(Map<Log, Long> last) {
  private static final Pattern GTID =
      Pattern.compile("\\s*([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})\\s*");
  private static final Pattern KEY = Pattern.compile("([0-9]{1,10})\\.([0-9]{1,10})");

  /** The numbers of one server in one domain, which are never given twice. */
  record Log(long domain, long server) {
    /** Returns what a key names; null where it is none of MariaDB's. */
    static @Nullable Log of(String key) {
      Matcher match = KEY.matcher(key);
      return match.matches()
          ? new Log(Long.parseLong(match.group(1)), Long.parseLong(match.group(2)))
          : null;
    }

    String key() {
      return domain + "." + server;
    }
  }

  static MariaDbState parse(String text) throws NoGtidException {
    Map<Log, Long> last = new LinkedHashMap<>();
    for (String part : text.split(",", -1)) {
      if (!part.isBlank()) {
        Matcher match = GTID.matcher(part);
        if (!match.matches()) {
          throw new NoGtidException(part);
        }
        Log log = new Log(Long.parseLong(match.group(1)), Long.parseLong(match.group(2)));
        last.merge(log, number(match.group(3)), (a, b) -> Long.compareUnsigned(a, b) >= 0 ? a : b);
      }
    }
    return new MariaDbState(last);
  }

  private static long number(String digits) throws NoGtidException {
    try {
      return Long.parseUnsignedLong(digits);
    } catch (NumberFormatException error) {
      throw new NoGtidException(digits);
    }
  }

  /** Returns whether the history has a number: those of one server rise in a domain. */
  boolean reaches(Log log, long number) {
    Long reached = last.get(log);
    return reached != null && Long.compareUnsigned(reached, number) >= 0;
  }

  boolean knows(Log log) {
    return last.containsKey(log);
  }

  /** Returns the highest number of a domain; null where it has none. */
  @Nullable Long highest(long domain) {
    return last.entrySet().stream()
        .filter(each -> each.getKey().domain == domain)
        .map(Map.Entry::getValue)
        .max(Long::compareUnsigned)
        .orElse(null);
  }

  /** Returns whether the numbers of a domain went on to one or past it. */
  boolean isPast(long domain, long number) {
    Long highest = highest(domain);
    return highest != null && Long.compareUnsigned(highest, number) >= 0;
  }

  /** Returns whether the history goes as far as another in every log. */
  boolean covers(MariaDbState other) {
    return other.last.entrySet().stream()
        .allMatch(each -> reaches(each.getKey(), Objects.requireNonNull(each.getValue())));
  }

  /** Returns whether each domain went on as far as in another position. */
  boolean coversDomains(MariaDbState other) {
    return other.last.keySet().stream()
        .allMatch(
            log -> {
              Long highest = other.highest(log.domain);
              return highest == null || isPast(log.domain, highest);
            });
  }
}
