package io.antipode.postgresql;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * By what a statement that only reads may write: what the catalogue of its database says of names.
 * A name means what the server resolves it to, so nothing is taken for PostgreSQL's own as long as
 * the application has made something of that name, in whichever schema. Thread-safe.
 */
final class Catalogue {
  /** What is known of a statement. */
  enum Verdict {
    READS,
    MAY_WRITE,
    UNKNOWN
  }

  /** Whom it asks. */
  @FunctionalInterface
  interface Asked {
    /** Returns the rows of a question. */
    List<Map<String, String>> ask(String sql) throws SQLException;
  }

  /** How long it is remembered: others may change the schema. */
  private static final Duration FRESH = Duration.ofSeconds(60);

  /** How many names of functions are remembered. */
  private static final int MOST = 1_024;

  private static final String LETTER = "[\\w$\\x{80}-\\x{10ffff}]";
  private static final Pattern PLAIN = Pattern.compile("[\\w$]+");

  private final Set<String> readonlyFunctions;
  private final AtomicLong changes = new AtomicLong();
  private volatile @Nullable Writing writing;
  private volatile Map<String, Known> functions = Map.of();
  private volatile @Nullable Away away;
  private volatile @Nullable Boolean seesLocks;

  /** What is written elsewhere, and when that was asked. */
  private record Away(Elsewhere elsewhere, long atNs) {}

  /** Whether a function may write, and when that was asked. */
  private record Known(boolean isWriting, long atNs) {}

  /**
   * What may write and does not look like it, and when that was asked.
   *
   * @param isEverything whether no name in a statement says so
   * @param words finds names that may stand anywhere, in a text in small letters
   * @param calls finds names that may stand before a parenthesis
   */
  private record Writing(
      boolean isEverything, @Nullable Pattern words, @Nullable Pattern calls, long atNs) {
    static Writing of(List<Map<String, String>> rows, long atNs) {
      return new Writing(
          rows.stream().anyMatch(row -> row.getOrDefault("kind", "any").equals("any")),
          finding(rows, "word", "(?<!" + LETTER + ")(?:", ")(?!" + LETTER + ")"),
          finding(rows, "call", "(?<![.]|" + LETTER + ")(?:", ")\\s*\\("),
          atNs);
    }

    private static @Nullable Pattern finding(
        List<Map<String, String>> rows, String kind, String before, String after) {
      String names =
          rows.stream()
              .filter(row -> row.getOrDefault("kind", "").equals(kind))
              .map(row -> Pattern.quote(row.getOrDefault("name", "").replace("\"", "\"\"")))
              .collect(Collectors.joining("|"));
      return names.isEmpty() ? null : Pattern.compile(before + names + after);
    }

    boolean mayWrite(String sql) {
      if (isEverything) {
        return true;
      }
      if (words != null) {
        String text = sql.toLowerCase(Locale.ROOT);
        if (text.contains("u&\"") || words.matcher(text).find()) { // Names may be in escapes.
          return true;
        }
      }
      return calls != null && calls.matcher(Statements.plain(sql).toLowerCase(Locale.ROOT)).find();
    }
  }

  /** Knows the functions that the application declares to write nothing. */
  Catalogue(Set<String> readonlyFunctions) {
    this.readonlyFunctions = readonlyFunctions;
  }

  /** The schema changes, or has changed. */
  void forget() {
    changes.incrementAndGet();
    writing = null;
    functions = Map.of();
    away = null;
  }

  private static boolean isFresh(long atNs) {
    return System.nanoTime() - atNs <= FRESH.toNanos();
  }

  private static String last(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }

  /** Returns whether a function may write; one in quotes, or of other letters, is not asked. */
  Verdict calls(String name) {
    if (!PLAIN.matcher(last(name)).matches()) {
      return Verdict.MAY_WRITE;
    }
    Known known = functions.get(name);
    if (known == null || !isFresh(known.atNs)) {
      return Verdict.UNKNOWN;
    }
    return known.isWriting ? Verdict.MAY_WRITE : Verdict.READS;
  }

  /**
   * Returns whether statements that only read by their words may write.
   *
   * @param called functions in them that may write, for all that the text tells
   */
  Verdict mayWrite(String sql, Collection<String> called) {
    Set<Verdict> verdicts = called.stream().map(this::calls).collect(Collectors.toSet());
    Writing known = writing;
    if (verdicts.contains(Verdict.MAY_WRITE)) {
      return Verdict.MAY_WRITE;
    }
    if (known == null || !isFresh(known.atNs)) {
      return Verdict.UNKNOWN;
    }
    if (known.mayWrite(sql)) {
      return Verdict.MAY_WRITE;
    }
    return verdicts.contains(Verdict.UNKNOWN) ? Verdict.UNKNOWN : Verdict.READS;
  }

  /** Learns what is unknown, with these functions. */
  void ask(Asked link, Collection<String> called) throws SQLException {
    long atNs = System.nanoTime();
    long before = changes.get();
    Writing known = writing;
    if (known == null || !isFresh(known.atNs)) {
      known = Writing.of(link.ask(Look.writing(readonlyFunctions)), atNs);
    }
    Map<String, Known> learnt = new HashMap<>();
    List<String> names = called.stream().filter(name -> calls(name) == Verdict.UNKNOWN).toList();
    if (!names.isEmpty()) {
      Set<String> last = names.stream().map(Catalogue::last).collect(Collectors.toSet());
      Set<String> found =
          link.ask(Look.functions(last)).stream()
              .map(row -> row.getOrDefault("name", ""))
              .collect(Collectors.toSet());
      names.forEach(name -> learnt.put(name, new Known(found.contains(last(name)), atNs)));
    }
    if (before != changes.get()) {
      return; // What was seen may be older than the change.
    }
    writing = known;
    if (functions.size() + learnt.size() <= MOST) {
      functions.forEach(learnt::putIfAbsent);
    }
    functions = Map.copyOf(learnt);
  }

  /** Returns whether the server says what a transaction holds locks on, for all that is known. */
  boolean seesLocks() {
    return Boolean.TRUE.equals(seesLocks);
  }

  /** Learns that, once: what a user may see changes rarely. */
  void learnLocks(Asked link) throws SQLException {
    if (seesLocks == null) {
      seesLocks = link.ask(Look.SEES_LOCKS).get(0).getOrDefault("may", "").equals("t");
    }
  }

  /** Returns whether functions may write by dblink; null where that is not known. */
  @Nullable Boolean writesAway() {
    Away known = away;
    return known == null ? null : known.elsewhere.byFunctions();
  }

  /**
   * Returns what is written elsewhere, without an id.
   *
   * @param isAnew whether what is remembered may be too old
   */
  Elsewhere elsewhere(Asked link, boolean isAnew) throws SQLException {
    long atNs = System.nanoTime();
    long before = changes.get();
    Away known = away;
    if (known != null && isFresh(known.atNs) && !isAnew) {
      return known.elsewhere;
    }
    Elsewhere found = Elsewhere.of(link.ask(Look.ELSEWHERE));
    if (before == changes.get()) { // Else what was seen may be older than the change.
      away = new Away(found, atNs);
    }
    return found;
  }
}
