package io.antipode.mysql;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A set of MySQL's GTIDs.
 *
 * @param logs of each log, {@code uuid} or {@code uuid:tag}, its runs, of which none touches the
 *     next
 */
record GtidSet(Map<String, List<Run>> logs) {
  static final GtidSet EMPTY = new GtidSet(Map.of());

  static final String UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
  static final String TAG = "[a-z_][a-z0-9_]{0,31}";
  private static final Pattern SID = Pattern.compile(UUID);

  /** {@code gtid_owned} puts nothing between the last thread and the next log. */
  private static final Pattern BEFORE_SID = Pattern.compile("(?=" + UUID + ")");

  private static final Pattern NAME = Pattern.compile(TAG);
  private static final Pattern SPACE = Pattern.compile("\\s+");
  private static final Pattern COMMAS = Pattern.compile("^,+|,+$");
  private static final Pattern NUMBERS =
      Pattern.compile("([0-9]{1,19})(?:-([0-9]{1,19}))?(?:#[0-9]+)*");

  /** Returns the set that {@code gtid_executed}, {@code gtid_owned} or a reply spells. */
  static GtidSet parse(String text) throws NoGtidException {
    Map<String, List<Run>> found = new LinkedHashMap<>();
    String packed = SPACE.matcher(text.toLowerCase(Locale.ROOT)).replaceAll("");
    for (String part : BEFORE_SID.split(packed, -1)) {
      String log = COMMAS.matcher(part).replaceAll("");
      if (!log.isEmpty()) {
        parseLog(log, found);
      }
    }
    found.replaceAll((log, runs) -> Run.joined(runs));
    return new GtidSet(found);
  }

  /** Reads {@code uuid[:tag]:numbers[:numbers...][:tag:numbers...]}. */
  private static void parseLog(String text, Map<String, List<Run>> found) throws NoGtidException {
    String[] pieces = text.split(":", -1);
    if (!SID.matcher(pieces[0]).matches() || pieces.length == 1) {
      throw new NoGtidException(text);
    }
    String log = pieces[0];
    for (String piece : List.of(pieces).subList(1, pieces.length)) {
      Matcher numbers = NUMBERS.matcher(piece);
      if (numbers.matches()) {
        long first = Long.parseUnsignedLong(numbers.group(1));
        long last = numbers.group(2) == null ? first : Long.parseUnsignedLong(numbers.group(2));
        if (Long.compareUnsigned(first, last)
            <= 0) { // MySQL reads one that runs backwards as empty.
          found.computeIfAbsent(log, each -> new ArrayList<>()).add(new Run(first, last));
        }
      } else if (NAME.matcher(piece).matches()) {
        log = pieces[0] + ":" + piece;
      } else {
        throw new NoGtidException(text);
      }
    }
  }

  /** Returns what is in either. */
  GtidSet union(GtidSet other) {
    Map<String, List<Run>> both = new LinkedHashMap<>(logs);
    other.logs.forEach(
        (log, runs) -> {
          List<Run> all = new ArrayList<>(both.getOrDefault(log, List.of()));
          all.addAll(runs);
          both.put(log, Run.joined(all));
        });
    return new GtidSet(both);
  }

  boolean contains(String log, long first, long last) {
    return logs.getOrDefault(log, List.of()).stream().anyMatch(run -> run.contains(first, last));
  }

  /** Returns whether all of another set is in this one. */
  boolean covers(GtidSet other) {
    return other.logs.entrySet().stream()
        .allMatch(
            log ->
                log.getValue().stream()
                    .allMatch(run -> contains(log.getKey(), run.first(), run.last())));
  }
}
