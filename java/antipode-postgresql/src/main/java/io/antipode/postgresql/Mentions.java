package io.antipode.postgresql;

import io.antipode.jdbc.Texts;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Which tables a statement names, by its text alone: only to know whether something has to be set
 * before it, and what it read that its result does not show.
 *
 * @param all how often it names each, by the names that are sought; not as what qualifies a column
 * @param sources the same, without the table that it writes to
 * @param isOwn whether it returns only what it has written itself
 * @param forgets whether the session's setting may be another after it
 * @param goesBack whether it may roll back to a savepoint
 * @param defines whether it makes, changes or drops something, such as a table
 */
record Mentions(
    Map<String, Integer> all,
    Map<String, Integer> sources,
    boolean isOwn,
    boolean forgets,
    boolean goesBack,
    boolean defines) {
  static final Mentions NOTHING = new Mentions(Map.of(), Map.of(), false, false, false, false);

  private static final String NAMED = "\\w$\\x{80}-\\x{10ffff}";

  /** The table that a statement writes to. */
  private static final Pattern TARGET =
      Pattern.compile(
          "\\s*(?:INSERT\\s+INTO|UPDATE|DELETE\\s+FROM|MERGE\\s+INTO)\\s+(?:ONLY\\s+)?["
              + NAMED
              + ".\"]+",
          Pattern.CASE_INSENSITIVE);

  /** An insert that returns nothing but what it has written, and that is alone. */
  private static final Pattern OWN =
      Pattern.compile(
          "\\s*INSERT\\b(?!.*(?:\\b(?:SELECT|TABLE|CONFLICT)\\b|;\\s*[^;\\s]))",
          Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private static final Pattern FORGETS =
      Pattern.compile("\\bRESET\\b|\\bDISCARD\\b|antipode\\.lineage", Pattern.CASE_INSENSITIVE);
  private static final Pattern BACK = Pattern.compile("\\bROLLBACK\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern DEFINES =
      Pattern.compile("\\s*(?:CREATE|ALTER|DROP)\\b", Pattern.CASE_INSENSITIVE);

  /** What finds the names that applications gave. */
  private static final Map<String, Pattern> PATTERNS = new ConcurrentHashMap<>();

  static Mentions of(String sql, Set<String> names) {
    if (Texts.isTooLong(sql)) {
      return anyOf(names);
    }
    String plain = Statements.named(sql);
    Map<String, Integer> every = counted(plain, names);
    Matcher target = TARGET.matcher(plain);
    return new Mentions(
        every,
        target.lookingAt() ? counted(plain.substring(target.end()), names) : every,
        OWN.matcher(plain).lookingAt(),
        FORGETS.matcher(plain).find(),
        BACK.matcher(plain).find(),
        DEFINES.matcher(plain).lookingAt());
  }

  /** Returns what a text says of which nobody knows more. */
  private static Mentions anyOf(Set<String> names) {
    Map<String, Integer> every = new HashMap<>();
    names.forEach(name -> every.put(name, 1));
    return new Mentions(every, every, false, true, true, true);
  }

  private static Map<String, Integer> counted(String plain, Set<String> names) {
    Map<String, Integer> found = new HashMap<>();
    for (String name : names) {
      Pattern pattern = PATTERNS.computeIfAbsent(name, Mentions::pattern);
      int times = (int) pattern.matcher(plain).results().count();
      if (times > 0) {
        found.put(name, times);
      }
    }
    return found;
  }

  /** Finds a table's name; not before a dot, nor where rows of it are locked. */
  private static Pattern pattern(String name) {
    String last = Pattern.quote(name.substring(name.lastIndexOf('.') + 1));
    return Pattern.compile(
        "(?<![" + NAMED + "])(?<!\\bOF\\s)\"?" + last + "\"?(?![" + NAMED + "\"]|\\s*\\.)",
        Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE);
  }
}
