package io.antipode.mysql;

import static io.antipode.mysql.Effect.BEGINS;
import static io.antipode.mysql.Effect.CALLS;
import static io.antipode.mysql.Effect.COMMITS;
import static io.antipode.mysql.Effect.ENDS;
import static io.antipode.mysql.Effect.ISOLATION;
import static io.antipode.mysql.Effect.LOCKS;
import static io.antipode.mysql.Effect.LOGGED;
import static io.antipode.mysql.Effect.MAY_SNAPSHOT;
import static io.antipode.mysql.Effect.NAMES;
import static io.antipode.mysql.Effect.NEXT_ONLY;
import static io.antipode.mysql.Effect.NUMBERS;
import static io.antipode.mysql.Effect.READS;
import static io.antipode.mysql.Effect.SEVERAL;
import static io.antipode.mysql.Effect.SNAPSHOT;
import static io.antipode.mysql.Effect.TRACKING;
import static io.antipode.mysql.Effect.TWO_PHASES;
import static io.antipode.mysql.Effect.UNLOGGED;
import static io.antipode.mysql.Effect.WRITES;

import io.antipode.jdbc.Called;
import io.antipode.jdbc.Texts;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a statement may do, judged by its text alone. Where the text leaves a choice it may do more
 * rather than less: a read that is held back without need costs a round trip, one that is missed is
 * stale.
 */
final class Statements {
  // What is not closed goes to the end; possessive, so that no text takes more than linear time.
  private static final Pattern QUOTED =
      Pattern.compile(
          "'(?:[^'\\\\]++|\\\\(?:.|\\z))*+(?:'|\\z)|\"(?:[^\"\\\\]++|\\\\(?:.|\\z))*+(?:\"|\\z)"
              + "|`[^`]*+(?:`|\\z)|/\\*.*?(?:\\*/|\\z)|(?:#|--(?=\\s))[^\\n]*+",
          Pattern.DOTALL);
  private static final Pattern VERSIONED = Pattern.compile("/\\*M?!\\d*+(.*?)\\*/", Pattern.DOTALL);
  private static final Pattern WORD = Pattern.compile("[\\s(;]*+([a-zA-Z]++)");
  private static final Pattern NESTED_READ = anyOf("select|returning");
  private static final Pattern READ_OF_WRITE = anyOf("select|returning|table");
  private static final Pattern NESTED_WRITE = anyOf("update|delete|insert|replace");
  private static final Pattern ONLY_LOGGED =
      Pattern.compile("SQL_LOG_BIN\\s*:?=\\s*(?:1|ON)\\b|SKIP_REPLICATION\\s*:?=\\s*(?:0|OFF)\\b");
  private static final String SESSION_VALUE =
      "(?:@@?[\\w.]+|\\d+|'[^'\\\\]*'|null|true|false|(?:last_insert_id|found_rows|row_count"
          + "|connection_id|database|schema|version|user|current_user|session_user|system_user"
          + "|current_role|now|sysdate|curdate|curtime|current_date|current_time|current_timestamp"
          + "|localtime|localtimestamp|utc_date|utc_time|utc_timestamp|unix_timestamp|uuid|rand|pi)"
          + "\\(\\s*\\d*\\s*\\)|current_(?:user|date|time|timestamp)|localtime(?:stamp)?"
          + "|utc_(?:date|time|timestamp))(?:\\s+as\\s+\\w+)?";
  private static final Pattern SESSION_READ =
      Pattern.compile(
          "(?:select|do)\\s+"
              + SESSION_VALUE
              + "(?:\\s*,\\s*"
              + SESSION_VALUE
              + ")*(?:\\s+limit\\s+1)?[\\s;]*",
          Pattern.CASE_INSENSITIVE);
  private static final Pattern SPACE = Pattern.compile("\\s+");

  /** How many bytes at its end say that a SELECT locks what it reads. */
  private static final int TAIL = 40;

  private static final Pattern LOCKING =
      Pattern.compile(
          "\\b(?:FOR\\s+(?:UPDATE|SHARE)|LOCK\\s+IN\\s+SHARE\\s+MODE)"
              + "(?:\\s+(?:NOWAIT|SKIP\\s+LOCKED|WAIT\\s+\\d+))?[\\s;]*+\\z",
          Pattern.CASE_INSENSITIVE);

  /** What may read besides, without a lock; and comments, which may hold the words of a lock. */
  private static final Pattern UNLOCKED =
      Pattern.compile("\\b(?:SELECT|TABLE|VALUES|OF)\\b|--|#|/\\*", Pattern.CASE_INSENSITIVE);

  /** In the names of schemas whose tables nothing locks. */
  private static final Pattern SYSTEM =
      Pattern.compile("SCHEMA|MYSQL|SYS", Pattern.CASE_INSENSITIVE);

  /** A longer one asks for more than the session's own values. */
  private static final int LONGEST_SESSION_READ = 200;

  /** What {@code SHOW} shows without a table of the data dictionary. */
  private static final Set<String> SHOWN =
      Set.of(
          "CREATE",
          "VARIABLES",
          "STATUS",
          "GLOBAL",
          "SESSION",
          "LOCAL",
          "WARNINGS",
          "ERRORS",
          "COUNT(*)",
          "GRANTS",
          "PROCESSLIST",
          "ENGINE",
          "ENGINES",
          "PLUGINS",
          "PRIVILEGES",
          "OPEN",
          "PROFILE",
          "PROFILES",
          "BINARY",
          "BINLOG",
          "MASTER",
          "SLAVE",
          "REPLICA",
          "REPLICAS",
          "RELAYLOG");

  private Statements() {}

  private static Pattern anyOf(String alternatives) {
    return Pattern.compile("\\b(?:" + alternatives + ")\\b", Pattern.CASE_INSENSITIVE);
  }

  /** Returns what a call of JDBC may do, with the statements that drivers send for it. */
  static Set<Effect> effects(Called called) {
    return switch (called) {
      case COMMIT -> effects("COMMIT");
      case ROLLBACK -> effects("ROLLBACK");
      case ROLLBACK_TO -> effects("ROLLBACK TO SAVEPOINT s");
      case AUTOCOMMIT -> effects("SET autocommit = 1");
      case ISOLATION -> effects("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
      // Connector/J asks for the parameters of a procedure, and for all that its metadata shows.
      case DRIVERS -> EnumSet.of(MAY_SNAPSHOT);
      // Connector/J makes the query to learn the columns of a statement that was not executed.
      case COLUMNS -> EnumSet.of(SNAPSHOT);
      case ROW_READ -> EnumSet.of(READS);
      case ROW_WRITE -> EnumSet.of(WRITES);
    };
  }

  /** Returns what a text may do, all its statements together. */
  static Set<Effect> effects(String sql) {
    if (Texts.isTooLong(sql)) {
      Set<Effect> found = EnumSet.of(READS, WRITES, COMMITS, SEVERAL);
      found.addAll(effects(Texts.head(sql)));
      found.remove(LOCKS);
      return found;
    }
    Set<Effect> found = textual(sql);
    if (mayCall(found) && !Functions.called(sql).isEmpty()) {
      found.add(CALLS);
    }
    return found;
  }

  /** Returns whether what a statement calls matters: others do anything, or call nothing. */
  private static boolean mayCall(Set<Effect> found) {
    boolean isData =
        found.contains(READS) || found.contains(WRITES) || found.contains(MAY_SNAPSHOT);
    return isData
        && !found.containsAll(Set.of(READS, WRITES, COMMITS))
        && !found.containsAll(Set.of(WRITES, COMMITS, ENDS));
  }

  private static Set<Effect> textual(String sql) {
    if (sql.indexOf(';') < 0) {
      return one(sql);
    }
    List<String> parts =
        List.of(blanked(sql).split(";", -1)).stream().filter(part -> !part.isBlank()).toList();
    if (parts.size() <= 1) {
      return one(sql);
    }
    Set<Effect> found = EnumSet.of(SEVERAL);
    parts.forEach(part -> found.addAll(one(part)));
    found.remove(LOCKS); // Which of them reads it does not say.
    return found;
  }

  /** Returns a text without what is quoted, and without comments but those with versions. */
  private static String blanked(String sql) {
    return QUOTED
        .matcher(sql)
        .replaceAll(
            match -> {
              Matcher versioned = VERSIONED.matcher(match.group());
              if (versioned.matches()) {
                return Matcher.quoteReplacement(versioned.group(1));
              }
              char first = match.group().charAt(0);
              return first == '\'' || first == '"' ? "''" : first == '`' ? "``" : " ";
            });
  }

  private static Set<Effect> one(String sql) {
    Matcher word = WORD.matcher(sql);
    if (word.lookingAt()) {
      return byWord(word.group(1), sql.substring(word.start(1)));
    }
    // After comments, or within one that has a version.
    String plain = uncommented(sql);
    Matcher behind = WORD.matcher(plain);
    if (behind.lookingAt()) {
      return byWord(behind.group(1), plain.substring(behind.start(1)));
    }
    return plain.isEmpty() ? Set.of() : EnumSet.of(READS, WRITES, COMMITS, ENDS);
  }

  /** Returns what stands after the comments that a statement begins with. */
  private static String uncommented(String sql) {
    Matcher comment = QUOTED.matcher(sql);
    int at = 0;
    while (true) {
      while (at < sql.length() && "(; \t\r\n".indexOf(sql.charAt(at)) >= 0) {
        at++;
      }
      comment.region(at, sql.length());
      if (at == sql.length() || "/#-".indexOf(sql.charAt(at)) < 0 || !comment.lookingAt()) {
        return sql.substring(at);
      }
      Matcher versioned = VERSIONED.matcher(comment.group());
      if (versioned.matches()) {
        return versioned.group(1) + sql.substring(comment.end());
      }
      at = comment.end();
    }
  }

  private static Set<Effect> byWord(String word, String sql) {
    return switch (word.toUpperCase(Locale.ROOT)) {
      case "SELECT" -> selecting(sql);
      case "TABLE", "VALUES", "DESCRIBE", "DESC", "CHECKSUM" -> EnumSet.of(READS);
      case "INSERT", "REPLACE", "UPDATE", "DELETE" -> locking(writing(sql, READ_OF_WRITE), sql);
      case "DO" -> isOfSession(sql) ? Set.of() : EnumSet.of(READS, WRITES, COMMITS);
      case "LOAD" -> writing(sql, NESTED_READ);
      case "HELP", "SAVEPOINT", "RELEASE", "DEALLOCATE", "PREPARE", "KILL", "GET", "PURGE" ->
          Set.of();
      case "USE" -> EnumSet.of(NAMES);
      case "LOCK" -> EnumSet.of(COMMITS, ENDS);
      // Whether they commit what is open, the server's flags say alone.
      case "UNLOCK", "CACHE", "CHANGE", "STOP", "RESET", "INSTALL", "UNINSTALL" ->
          EnumSet.of(COMMITS);
      case "ALTER",
          "RENAME",
          "TRUNCATE",
          "GRANT",
          "REVOKE",
          "FLUSH",
          "OPTIMIZE",
          "REPAIR",
          "IMPORT" ->
          EnumSet.of(WRITES, COMMITS, ENDS);
      case "CREATE", "DROP" -> defining(sql);
      case "WITH" ->
          NESTED_WRITE.matcher(sql).find() ? EnumSet.of(READS, WRITES) : EnumSet.of(READS);
      case "EXPLAIN" ->
          words(sql).contains("ANALYZE") ? EnumSet.of(READS, WRITES) : EnumSet.of(READS);
      case "START" -> starting(sql);
      // MariaDB's BEGIN NOT ATOMIC holds statements.
      case "BEGIN" ->
          words(sql).contains("NOT")
              ? EnumSet.of(READS, WRITES, COMMITS, ENDS)
              : EnumSet.of(COMMITS, ENDS, BEGINS);
      case "COMMIT" -> chaining(EnumSet.of(COMMITS, ENDS), sql);
      // ROLLBACK TO keeps the transaction and its snapshot.
      case "ROLLBACK" -> words(sql).contains("TO") ? Set.of() : chaining(EnumSet.of(ENDS), sql);
      case "XA" -> inTwoPhases(second(sql));
      case "SET" -> setting(sql);
      case "SHOW" -> SHOWN.contains(second(sql)) ? Set.of() : EnumSet.of(MAY_SNAPSHOT);
      // CALL, EXECUTE, DO, HANDLER, ANALYZE and compound statements among them.
      default -> EnumSet.of(READS, WRITES, COMMITS);
    };
  }

  private static List<String> words(String sql) {
    return List.of(SPACE.split(sql.strip().toUpperCase(Locale.ROOT), -1));
  }

  private static String second(String sql) {
    List<String> words = words(sql);
    return words.size() > 1 ? words.get(1) : "";
  }

  /** Returns whether it asks for the session's own values alone, which no log replicates. */
  private static boolean isOfSession(String sql) {
    return sql.length() < LONGEST_SESSION_READ && SESSION_READ.matcher(sql).matches();
  }

  private static Set<Effect> selecting(String sql) {
    String tail = sql.substring(Math.max(0, sql.length() - TAIL));
    if (LOCKING.matcher(tail).find()) {
      Set<Effect> found = EnumSet.of(READS);
      return UNLOCKED.matcher(sql).find("SELECT".length()) ? found : locking(found, sql);
    }
    return isOfSession(sql) ? Set.of() : EnumSet.of(READS);
  }

  /** Returns effects, and that what is read is locked, unless a table of the server's is named. */
  private static Set<Effect> locking(Set<Effect> found, String sql) {
    if (found.contains(READS) && !SYSTEM.matcher(sql).find()) {
      found.add(LOCKS);
    }
    return found;
  }

  private static Set<Effect> writing(String sql, Pattern reading) {
    return reading.matcher(sql).find() ? EnumSet.of(WRITES, READS) : EnumSet.of(WRITES);
  }

  private static Set<Effect> defining(String sql) {
    List<String> words = words(sql);
    boolean isTemporary = words.subList(1, Math.min(words.size(), 3)).contains("TEMPORARY");
    Set<Effect> found = isTemporary ? EnumSet.of(NAMES) : EnumSet.of(WRITES, COMMITS, ENDS);
    if (NESTED_READ.matcher(sql).find()) {
      found.add(READS);
    }
    return found;
  }

  private static Set<Effect> starting(String sql) {
    if (!second(sql).startsWith("TRANSACTION")) {
      return EnumSet.of(COMMITS); // START REPLICA.
    }
    Set<Effect> found = EnumSet.of(COMMITS, ENDS, BEGINS);
    if (sql.toUpperCase(Locale.ROOT).contains("SNAPSHOT")) {
      found.add(SNAPSHOT);
      found.add(READS);
    }
    return found;
  }

  private static Set<Effect> chaining(Set<Effect> found, String sql) {
    List<String> words = words(sql);
    int at = words.indexOf("CHAIN");
    if (at > 0 && !words.get(at - 1).equals("NO")) {
      found.add(BEGINS);
    }
    return found;
  }

  private static Set<Effect> inTwoPhases(String step) {
    return switch (step) {
      case "COMMIT" -> EnumSet.of(TWO_PHASES, WRITES, COMMITS, ENDS);
      // What is prepared may be committed by anybody, at any time.
      case "PREPARE" -> EnumSet.of(TWO_PHASES, ENDS);
      case "START", "BEGIN" -> EnumSet.of(BEGINS);
      default -> Set.of();
    };
  }

  private static Set<Effect> setting(String sql) {
    String text = sql.toUpperCase(Locale.ROOT);
    Set<Effect> found = EnumSet.noneOf(Effect.class);
    // SET @x = (SELECT ...), a function of the user's, NEXT VALUE FOR a sequence, or SET STATEMENT
    // ... FOR any statement.
    boolean isAny = second(sql).equals("STATEMENT");
    boolean isNext = text.contains("NEXT") && text.contains("VALUE");
    if (text.contains("SELECT") || text.contains("(") || isNext || isAny) {
      found.addAll(EnumSet.of(READS, WRITES, COMMITS));
      if (!isAny) {
        locking(found, sql);
      }
    }
    if (text.contains("AUTOCOMMIT") || text.contains("PASSWORD")) {
      found.add(COMMITS);
    }
    if (text.contains("ISOLATION")) {
      found.add(ISOLATION);
      if (!text.contains("SESSION")) {
        found.add(NEXT_ONLY);
      }
    }
    if (text.contains("SESSION_TRACK")) {
      found.add(TRACKING);
    }
    if (text.contains("GTID_NEXT") || text.contains("SERVER_ID")) {
      found.add(NUMBERS);
    }
    if (text.contains("SQL_LOG_BIN") || text.contains("SKIP_REPLICATION")) {
      found.add(ONLY_LOGGED.matcher(text).find() ? LOGGED : UNLOGGED);
    }
    return found;
  }
}
