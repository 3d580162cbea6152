package io.antipode.postgresql;

import static io.antipode.postgresql.Effect.BEGINS;
import static io.antipode.postgresql.Effect.CALLS;
import static io.antipode.postgresql.Effect.COMMITS;
import static io.antipode.postgresql.Effect.COMMITS_INSIDE;
import static io.antipode.postgresql.Effect.DECLARES;
import static io.antipode.postgresql.Effect.ENDS;
import static io.antipode.postgresql.Effect.FETCHES;
import static io.antipode.postgresql.Effect.HOLDS;
import static io.antipode.postgresql.Effect.IMPORTS;
import static io.antipode.postgresql.Effect.ISOLATION;
import static io.antipode.postgresql.Effect.READS;
import static io.antipode.postgresql.Effect.SEVERAL;
import static io.antipode.postgresql.Effect.TWO_PHASES;
import static io.antipode.postgresql.Effect.WRITES;

import io.antipode.jdbc.Called;
import io.antipode.jdbc.Texts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a statement may do, by its text alone: the tables of docs/spec/postgresql-statements.md.
 * Where the text leaves a choice it may do more rather than less.
 */
final class Statements {
  private static final Pattern FIRST =
      Pattern.compile("[\\s(]*+(" + Functions.IDENTIFIER + "|\\S)?");
  private static final Pattern NAMES = Pattern.compile(Functions.IDENTIFIER);

  private static final String SET_CONFIG = "set_config";

  /**
   * A statement that changes what its session shows, and nothing else. Others change what a commit
   * waits for, or what a snapshot is, or name what no text shows.
   */
  private static final Pattern SETTING =
      Pattern.compile(
          "\\s*SELECT\\s+(?:pg_catalog\\s*\\.\\s*)?set_config\\s*\\(\\s*"
              + "'(?:TimeZone|DateStyle|IntervalStyle|client_encoding|application_name"
              + "|statement_timeout|lock_timeout|(?!antipode\\.)[a-z_]\\w*\\.\\w+)'\\s*,\\s*"
              + "(?:%s|%\\(\\w+\\)s|\\$\\d+|\\?|'[^'\\\\]*')(?:\\s*::\\s*\\w+)?\\s*,\\s*"
              + "(?:true|false)\\s*\\)\\s*;?\\s*",
          Pattern.CASE_INSENSITIVE);

  private static final Set<String> READ = Set.of("SELECT", "TABLE", "VALUES", "WITH", "EXPLAIN");
  private static final Set<String> WRITE =
      words(
          """
          INSERT UPDATE DELETE MERGE TRUNCATE CREATE ALTER DROP GRANT REVOKE COMMENT REFRESH
          REINDEX CLUSTER SECURITY IMPORT REASSIGN VACUUM ANALYZE ANALYSE
          """);
  private static final Set<String> NOTHING =
      words(
          """
          SHOW RESET DISCARD DEALLOCATE LISTEN UNLISTEN NOTIFY SAVEPOINT RELEASE CHECKPOINT LOAD
          CLOSE LOCK
          """);
  private static final Set<String> MODIFY = words("INSERT UPDATE DELETE MERGE INTO");
  private static final Set<String> LOOKING = words("SELECT FROM USING RETURNING VALUES WITH");
  private static final List<String> AS_TABLE = List.of("AS", "TABLE");
  private static final List<String> TRANSACTION_SNAPSHOT = List.of("TRANSACTION", "SNAPSHOT");

  private Statements() {}

  private static Set<String> words(String text) {
    return Set.of(text.strip().split("\\s+"));
  }

  /** Returns what a text does that nobody can read. */
  private static Set<Effect> unreadable() {
    Set<Effect> found = anything();
    found.add(SEVERAL);
    return found;
  }

  /** Returns what one statement may do of which nobody knows more. */
  private static Set<Effect> anything() {
    return EnumSet.of(READS, WRITES, CALLS, COMMITS_INSIDE);
  }

  /** Returns what a call of JDBC may do, with the statements that the driver sends for it. */
  static Set<Effect> effects(Called called) {
    return switch (called) {
      case COMMIT, AUTOCOMMIT -> EnumSet.of(COMMITS, ENDS);
      case ROLLBACK -> EnumSet.of(ENDS);
      case ROLLBACK_TO, DRIVERS, COLUMNS -> EnumSet.noneOf(Effect.class);
      case ISOLATION -> EnumSet.of(ISOLATION);
      case ROW_READ -> EnumSet.of(READS);
      case ROW_WRITE -> EnumSet.of(READS, WRITES);
    };
  }

  /**
   * Returns what a text of one or more statements may do.
   *
   * @param readonly further functions that write nothing, in small letters
   */
  static Set<Effect> effects(String sql, Set<String> readonly) {
    if (Texts.isTooLong(sql)) {
      Set<Effect> found = unreadable();
      found.addAll(effects(Texts.head(sql), readonly));
      return found;
    }
    if (isSetting(sql)) {
      return EnumSet.of(READS);
    }
    String plain = Hidden.replaced(sql, Statements::blank);
    if (plain == null) {
      return unreadable();
    }
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    int count = 0;
    for (String part : plain.split(";", -1)) {
      if (!part.isBlank()) {
        count++;
        found.addAll(one(part, readonly));
      }
    }
    if (count > 1) {
      found.add(SEVERAL);
    }
    return found;
  }

  /** Returns whether a text only changes what its session shows; allocates nothing for others. */
  private static boolean isSetting(String sql) {
    for (int at = 0; at <= sql.length() - SET_CONFIG.length(); at++) {
      if (sql.regionMatches(true, at, SET_CONFIG, 0, SET_CONFIG.length())) {
        return SETTING.matcher(sql).matches();
      }
    }
    return false;
  }

  /** Returns whether nobody can read what a text does. */
  static boolean isUnreadable(String sql) {
    return Texts.isTooLong(sql) || Hidden.replaced(sql, Statements::blank) == null;
  }

  /** Returns the functions that a text calls and that may write, for all that is known. */
  static Set<String> unknownFunctions(String sql, Set<String> readonly) {
    String plain = Texts.isTooLong(sql) ? null : Hidden.replaced(sql, Statements::blank);
    return plain == null || isSetting(sql) ? Set.of() : Functions.called(plain, readonly);
  }

  /** Returns a text without what hides words; whole where one cannot tell. */
  static String plain(String sql) {
    String plain = Hidden.replaced(sql, Statements::blank);
    return plain == null ? sql : plain;
  }

  /** Returns a text without texts and comments; names in quotes, and bodies of functions, stay. */
  static String named(String sql) {
    String plain = Hidden.replaced(sql, Statements::kept);
    return plain == null ? sql : plain; // One name too many costs little.
  }

  private static String kept(String hidden) {
    return hidden.startsWith("\"") || hidden.startsWith("$") ? hidden : blank(hidden);
  }

  private static String blank(String hidden) {
    if (hidden.startsWith("\"")) {
      return "\"\"";
    }
    return hidden.startsWith("--") || hidden.startsWith("/*") ? " " : "''";
  }

  private static Set<Effect> one(String part, Set<String> readonly) {
    Matcher first = FIRST.matcher(part);
    if (!first.lookingAt() || first.group(1) == null) {
      return Set.of();
    }
    String word = first.group(1).toUpperCase(Locale.ROOT);
    List<String> rest = new ArrayList<>();
    Matcher names = NAMES.matcher(part).region(first.end(), part.length());
    while (names.find()) {
      rest.add(names.group().toUpperCase(Locale.ROOT));
    }
    if (NOTHING.contains(word)) {
      return Set.of();
    }
    if (WRITE.contains(word)) {
      return looks(word, rest) ? EnumSet.of(WRITES, READS) : EnumSet.of(WRITES);
    }
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    found.addAll(of(word, rest));
    boolean isRuled = found.contains(FETCHES);
    if (found.contains(READS) && !isRuled && !Functions.called(part, readonly).isEmpty()) {
      found.add(CALLS);
    }
    return found;
  }

  /** Whether a statement that writes reads, too; TABLE is mostly the kind of what it changes. */
  private static boolean looks(String word, List<String> rest) {
    if (MODIFY.contains(word) && rest.contains("TABLE")) {
      return true;
    }
    return hasAny(rest, LOOKING) || Collections.indexOfSubList(rest, AS_TABLE) >= 0;
  }

  private static boolean hasAny(List<String> words, Set<String> some) {
    return !Collections.disjoint(words, some);
  }

  private static Set<Effect> of(String word, List<String> rest) {
    String second = rest.isEmpty() ? "" : rest.get(0);
    return switch (word) {
      case "BEGIN", "START" ->
          rest.contains("ISOLATION") ? EnumSet.of(BEGINS, ISOLATION) : EnumSet.of(BEGINS);
      case "COMMIT", "END" ->
          second.equals("PREPARED") ? EnumSet.of(WRITES) : chained(EnumSet.of(COMMITS, ENDS), rest);
      case "ROLLBACK", "ABORT" ->
          second.equals("PREPARED") || rest.contains("TO")
              ? Set.of()
              : chained(EnumSet.of(ENDS), rest);
      case "PREPARE" -> second.equals("TRANSACTION") ? EnumSet.of(TWO_PHASES, ENDS) : Set.of();
      case "SET" -> set(rest);
      case "FETCH", "MOVE" -> EnumSet.of(READS, FETCHES);
      case "DECLARE" ->
          rest.contains("HOLD") && !rest.contains("WITHOUT")
              ? EnumSet.of(READS, DECLARES, HOLDS)
              : EnumSet.of(READS, DECLARES);
      case "COPY" -> {
        if (READ.contains(second) || MODIFY.contains(second)) {
          yield modifying(rest); // A query in parentheses.
        }
        yield rest.contains("FROM") ? EnumSet.of(WRITES) : EnumSet.of(READS);
      }
      case "EXPLAIN" -> explained(rest);
      case "SELECT" -> rest.contains("INTO") ? EnumSet.of(READS, WRITES) : EnumSet.of(READS);
      default -> !READ.contains(word) ? anything() : modifying(rest);
    };
  }

  /** Returns what EXPLAIN ANALYZE executes: what is prepared shows nothing of what it does. */
  private static Set<Effect> explained(List<String> rest) {
    Set<Effect> found = modifying(rest);
    if (rest.contains("EXECUTE")) {
      found.addAll(anything());
    }
    if (rest.contains("CREATE")) {
      found.add(WRITES);
    }
    return found;
  }

  private static Set<Effect> set(List<String> rest) {
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    if (rest.stream().anyMatch(each -> each.contains("ISOLATION"))) {
      found.add(ISOLATION);
    }
    if (Collections.indexOfSubList(rest, TRANSACTION_SNAPSHOT) >= 0) {
      found.add(IMPORTS);
    }
    return found;
  }

  private static Set<Effect> modifying(List<String> rest) {
    return hasAny(rest, MODIFY) ? EnumSet.of(READS, WRITES) : EnumSet.of(READS);
  }

  private static Set<Effect> chained(Set<Effect> found, List<String> rest) {
    if (rest.contains("CHAIN") && !rest.contains("NO")) {
      found.add(BEGINS);
    }
    return found;
  }
}
