package io.antipode.postgresql;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What a database may write that is in no transaction of its own: at other servers, by extensions.
 * Functions of dblink commit at once, whatever becomes of the session's transaction; a foreign
 * table is written with its commit. Neither gives the transaction an id.
 *
 * @param tables names that are written elsewhere, and whether all of these lie on this server
 * @param byFunctions whether functions may have written without an id
 */
record Elsewhere(Map<String, Boolean> tables, boolean byFunctions) {
  /** How much of a text is searched for what it changes. */
  private static final int HEAD = 10_000;

  private static final String NAME = "(?:\"(?:[^\"]|\"\")++\"|[\\w$\\x{80}-\\x{10ffff}]++)";

  private static final Pattern TARGET =
      Pattern.compile(
          "\\b(?:INSERT\\s+INTO|DELETE\\s+FROM|MERGE\\s+INTO|UPDATE|COPY|TRUNCATE(?:\\s+TABLE)?)"
              + "\\s+(?:ONLY\\s+)?(?:%s\\s*\\.\\s*){0,2}(%s)(?!\\s*\\.)".replace("%s", NAME),
          Pattern.CASE_INSENSITIVE);

  /** Functions of dblink that send a statement to another server. */
  private static final Set<String> DBLINK = Set.of("dblink", "dblink_exec", "dblink_send_query");

  /** How texts begin that {@code dblink} sends: those that only read, and others. */
  private static final Pattern READS =
      Pattern.compile("'\\s*(?:SELECT|TABLE|VALUES)\\b", Pattern.CASE_INSENSITIVE);

  private static final Pattern CHANGES =
      Pattern.compile(
          "'\\s*(?:INSERT|UPDATE|DELETE|MERGE|CALL|DO|CREATE|DROP|ALTER|TRUNCATE)\\b",
          Pattern.CASE_INSENSITIVE);

  /** Returns what the answer to {@link Look#ELSEWHERE} says. */
  static Elsewhere of(List<Map<String, String>> rows) {
    Map<String, Boolean> tables = new HashMap<>();
    boolean isByFunctions = false;
    for (Map<String, String> row : rows) {
      String name = row.getOrDefault("name", "");
      isByFunctions |= name.isEmpty();
      if (!name.isEmpty()) {
        tables.merge(name, row.getOrDefault("here", "").equals("t"), Boolean::logicalAnd);
      }
    }
    return new Elsewhere(Map.copyOf(tables), isByFunctions);
  }

  /** Returns whether another server is written where tables with these names are changed. */
  boolean writesAway(Collection<String> names) {
    return names.stream().anyMatch(name -> Boolean.FALSE.equals(tables.get(name)));
  }

  /** Returns whether what is changed under these names gives no id to its transaction. */
  boolean isAmong(Collection<String> names) {
    return names.stream().anyMatch(tables::containsKey);
  }

  /** Returns the tables that a text changes, without their schemas, in small letters. */
  static Set<String> targets(String sql) {
    Set<String> found = new HashSet<>();
    Matcher target = TARGET.matcher(sql).region(0, Math.min(sql.length(), HEAD));
    while (target.find()) {
      String name = target.group(1);
      boolean isQuoted = name.startsWith("\"");
      String bare = isQuoted ? name.substring(1, name.length() - 1).replace("\"\"", "\"") : name;
      found.add(bare.toLowerCase(Locale.ROOT));
    }
    return found;
  }

  /** Returns whether a text may write at another server by a function of dblink. */
  static boolean isSent(String sql, Set<String> readonly) {
    if (!sql.toLowerCase(Locale.ROOT).contains("dblink")) {
      return false;
    }
    Set<String> used =
        Statements.unknownFunctions(sql, readonly).stream()
            .map(name -> name.substring(name.lastIndexOf('.') + 1))
            .filter(DBLINK::contains)
            .collect(Collectors.toCollection(TreeSet::new));
    if (!used.equals(Set.of("dblink"))) {
      return !used.isEmpty();
    }
    return !READS.matcher(sql).find() || CHANGES.matcher(sql).find();
  }
}
