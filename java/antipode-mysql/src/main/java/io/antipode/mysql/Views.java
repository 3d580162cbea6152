package io.antipode.mysql;

import io.antipode.jdbc.Texts;
import io.antipode.mysql.Listing.Asked;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What one connection knows of the names that its statements read: a view may call a function that
 * writes, which neither the statement nor its reply says. So a name is asked about, once a
 * connection: {@code SHOW CREATE TABLE} says what a view is made of, and takes no snapshot. What
 * nobody may see of a view may write. Where the reply to a commit has its position, only a
 * statement that commits itself is concerned, and only names that the server has views of.
 */
final class Views {
  /** After this a name is asked about again: others may have changed what it stands for. */
  static final Duration FRESH = Duration.ofSeconds(60);

  /** How many names are known, and how many of one statement are asked about. */
  private static final int MOST = 256;

  private static final int MOST_ASKED = 8;

  /** What a server answers for a name that stands for nothing: of a common table expression. */
  private static final Set<Integer> NOTHING = Set.of(1046, 1049, 1146);

  private static final Set<String> SYSTEM =
      Set.of("information_schema", "mysql", "performance_schema", "sys");

  // Possessive, so that no text takes more than linear time.
  private static final Pattern QUOTED =
      Pattern.compile(
          "`[^`]*+(?:`|\\z)|'(?:[^'\\\\]++|\\\\(?:.|\\z))*+(?:'|\\z)"
              + "|\"(?:[^\"\\\\]++|\\\\(?:.|\\z))*+(?:\"|\\z)"
              + "|/\\*(?!M?!).*?(?:\\*/|\\z)|(?:#|--(?=\\s))[^\\n]*+",
          Pattern.DOTALL);

  private static final String PART = "(?:`[^`]++`|\"[^\"]++\"|[\\w$\u0080-\uffff]++)";
  private static final String NAME = "[\\s(]*+(" + PART + "(?:\\s*+\\.\\s*+" + PART + ")?)";
  private static final Pattern FROM =
      Pattern.compile("\\b(?:from|(?:straight_)?join|table)\\b" + NAME, Pattern.CASE_INSENSITIVE);
  private static final Pattern AND =
      Pattern.compile(
          "(?:\\s++(?:as\\s++)?" + PART + ")?+[\\s)]*+," + NAME, Pattern.CASE_INSENSITIVE);

  private final Listing listing;
  private final Map<String, Boolean> known = new HashMap<>();
  private long sinceNs = System.nanoTime();

  /**
   * Knows nothing yet.
   *
   * @param listing of its server's views; {@link Listing#ANYTHING} where no reply has a position
   */
  Views(Listing listing) {
    this.listing = listing;
  }

  Listing listing() {
    return listing;
  }

  /** Returns the tables and views that a statement reads, as it spells them. */
  static Set<String> names(String sql) {
    String text = QUOTED.matcher(Texts.most(sql)).replaceAll(Views::shown);
    Set<String> found = new TreeSet<>();
    Matcher from = FROM.matcher(text);
    while (from.find()) {
      add(from.group(1), found);
      Matcher and = AND.matcher(text).region(from.end(), text.length());
      while (and.lookingAt()) {
        add(and.group(1), found);
        and.region(and.end(), text.length());
      }
    }
    return found;
  }

  /** Returns a name as it is quoted, and nothing of strings and comments. */
  private static String shown(MatchResult quoted) {
    char first = quoted.group().charAt(0);
    boolean isName = first == '`' || first == '"';
    return isName ? Matcher.quoteReplacement(quoted.group()) : first == '\'' ? "''" : " ";
  }

  /** Returns a name, or a part of it, without its quotes. */
  static String unquoted(String part) {
    return part.replace("`", "").replace("\"", "");
  }

  private static void add(String spelled, Set<String> found) {
    int dot = spelled.indexOf('.');
    String schema = dot < 0 ? "" : spelled.substring(0, dot).strip();
    if (!SYSTEM.contains(unquoted(schema).toLowerCase(Locale.ROOT))) {
      found.add(dot < 0 ? spelled : schema + "." + spelled.substring(dot + 1).strip());
    }
  }

  /**
   * Something was defined anew, or another schema is the default.
   *
   * @param isMade whether a view may have been made
   */
  void forget(boolean isMade) {
    known.clear();
    if (isMade) {
      listing.forget();
    }
  }

  /**
   * Returns whether a statement reads a view that may write; asks what its names stand for.
   *
   * @param harmless functions of the application's that write nothing
   * @throws SQLException if the connection is lost
   */
  boolean mayWrite(String sql, Flavor flavor, Set<String> harmless, Asked server)
      throws SQLException {
    if (known.size() > MOST || System.nanoTime() - sinceNs > FRESH.toNanos()) {
      known.clear();
      sinceNs = System.nanoTime();
    }
    Set<String> names = names(sql);
    if (names.isEmpty()) {
      return false;
    }
    if (listing.isStale()) {
      listing.ask(server);
    }
    names.removeIf(name -> !listing.has(name));
    List<String> asked =
        names.stream().filter(name -> !known.containsKey(name)).limit(MOST_ASKED).toList();
    ask(asked, flavor, harmless, server);
    return names.stream().anyMatch(name -> known.getOrDefault(name, true));
  }

  private void ask(Collection<String> names, Flavor flavor, Set<String> harmless, Asked server)
      throws SQLException {
    for (String name : names) {
      known.put(name, false); // A view is not made of itself.
      String text = definition(name, server);
      if (text == null) {
        known.put(name, true);
        continue;
      }
      Set<String> inner = names(text);
      ask(
          inner.stream().filter(each -> !known.containsKey(each)).toList(),
          flavor,
          harmless,
          server);
      Set<String> calls = new HashSet<>(Functions.called(text, flavor));
      calls.removeAll(harmless);
      boolean isWriting = inner.stream().anyMatch(each -> known.getOrDefault(each, true));
      known.put(name, !calls.isEmpty() || isWriting || Texts.isTooLong(text));
    }
  }

  /** Returns what a view is made of; nothing for a table, null where nobody says. */
  private static @Nullable String definition(String name, Asked server) throws SQLException {
    try {
      List<Map<String, String>> rows = server.ask("SHOW CREATE TABLE " + quoted(name));
      Map<String, String> row = rows.isEmpty() ? Map.of() : rows.get(0);
      String whole = row.getOrDefault("Create View", "");
      int select = whole.indexOf(" AS select ");
      return select < 0 ? whole : whole.substring(select + " AS ".length());
    } catch (SQLException error) {
      if (!Errors.isRefusal(error)) {
        throw error;
      }
      return NOTHING.contains(error.getErrorCode()) ? "" : null;
    }
  }

  private static String quoted(String name) {
    StringBuilder quoted = new StringBuilder();
    for (String part : name.split("\\.", -1)) {
      quoted.append(quoted.isEmpty() ? "`" : ".`").append(unquoted(part)).append('`');
    }
    return quoted.toString();
  }
}
