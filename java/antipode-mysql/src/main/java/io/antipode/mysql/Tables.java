package io.antipode.mysql;

import io.antipode.mysql.Token.Kind;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The tables with whose rows lineages are stored, and statements about them. Judged by words alone:
 * where the text leaves a doubt a statement stays as it is, and its reader learns no lineage from
 * it.
 */
final class Tables {
  /** The invisible column. */
  static final String COLUMN = "_ap";

  /** What the columns are called that a statement shows besides, with their number. */
  static final String SHOWN = "_antipode_";

  /** With these the rows of the outermost query are no rows of its tables. */
  private static final Set<String> MADE =
      Set.of(
          "DISTINCT",
          "DISTINCTROW",
          "GROUP",
          "HAVING",
          "UNION",
          "EXCEPT",
          "INTERSECT",
          "INTO",
          "PROCEDURE",
          "WITH");

  private static final Set<String> AGGREGATES =
      Set.of(
          "ANY_VALUE",
          "AVG",
          "BIT_AND",
          "BIT_OR",
          "BIT_XOR",
          "COUNT",
          "GROUP_CONCAT",
          "JSON_ARRAYAGG",
          "JSON_OBJECTAGG",
          "MAX",
          "MIN",
          "STD",
          "STDDEV",
          "STDDEV_POP",
          "STDDEV_SAMP",
          "SUM",
          "VAR_POP",
          "VAR_SAMP",
          "VARIANCE");

  /** What may stand after a table where an alias might. */
  private static final Set<String> NO_ALIAS =
      Set.of(
          "CROSS",
          "FETCH",
          "FOR",
          "FORCE",
          "FROM",
          "IGNORE",
          "INNER",
          "JOIN",
          "LEFT",
          "LIMIT",
          "LOCK",
          "NATURAL",
          "OFFSET",
          "ON",
          "ORDER",
          "OUTER",
          "PARTITION",
          "RIGHT",
          "STRAIGHT_JOIN",
          "TABLESAMPLE",
          "USE",
          "USING",
          "WHERE",
          "WINDOW");

  private static final Set<String> JOINS = Set.of("JOIN", "STRAIGHT_JOIN");
  private static final Set<String> TABLES_END =
      Set.of("WHERE", "ORDER", "LIMIT", "FOR", "LOCK", "WINDOW", "FETCH");

  private final Map<String, String> known = new LinkedHashMap<>();
  private final Pattern mention;

  /**
   * A table of a query, and the name by which its columns are called there.
   *
   * @param end where what follows it begins
   */
  private record Reference(String name, String alias, int end) {}

  /**
   * A statement that shows lineages.
   *
   * @param columns how many columns it shows besides, at the end
   */
  record Rewritten(String sql, int columns) {}

  /**
   * Knows some tables.
   *
   * @param names {@code table} or {@code schema.table}, whose case is ignored; at least one
   */
  Tables(Collection<String> names) {
    names.forEach(name -> known.put(name.toLowerCase(Locale.ROOT), name));
    mention = mention(names);
  }

  /** Returns what finds names without their schemas; data may have them, too. */
  static Pattern mention(Collection<String> names) {
    String last =
        names.stream()
            .map(name -> Pattern.quote(name.substring(name.lastIndexOf('.') + 1)))
            .distinct()
            .collect(Collectors.joining("|"));
    return Pattern.compile(
        "(?<![\\w$])(?:" + last + ")(?![\\w$])", Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE);
  }

  Collection<String> names() {
    return known.values();
  }

  /** Returns whether a statement may be about one of them; data may have their names, too. */
  boolean areMentioned(String sql) {
    return mention.matcher(sql).find();
  }

  /** Returns one of them as it was named; null for another table. */
  private @Nullable String named(String name) {
    String folded = name.toLowerCase(Locale.ROOT);
    String found = known.get(folded);
    return found == null ? known.get(folded.substring(folded.lastIndexOf('.') + 1)) : found;
  }

  /** Returns a statement with the lineages of its rows; null where it has to stay as it is. */
  @Nullable Rewritten select(String sql) {
    List<Token> tokens = Token.of(sql);
    if (tokens.isEmpty() || !tokens.get(0).word().equals("SELECT")) {
      return null;
    }
    List<Token> outer = tokens.stream().filter(token -> token.depth() == 0).toList();
    int from = from(outer);
    if (from < 0 || isMade(tokens, outer)) {
      return null;
    }
    StringBuilder added = new StringBuilder();
    int columns = 0;
    for (Reference table : references(outer, from)) {
      if (named(table.name) != null) {
        added.append(", ").append(table.alias).append(".`" + COLUMN + "` AS `" + SHOWN);
        added.append(columns++).append('`');
      }
    }
    if (columns == 0) {
      return null;
    }
    int at = outer.get(from).at();
    String shown = sql.substring(0, at).stripTrailing() + added + " " + sql.substring(at);
    return new Rewritten(shown, columns);
  }

  /**
   * Returns the rows that a query asks for by their keys. Where it names several values of a
   * column, every combination: one too many costs little, one too few would leave out a dependency.
   *
   * @param sql a query that {@link #select} takes
   * @param keys the columns of each table's primary key, and their character sets
   */
  List<Sought> sought(String sql, Map<String, Map<String, String>> keys) {
    List<Token> tokens = Token.of(sql);
    List<Token> outer = tokens.stream().filter(token -> token.depth() == 0).toList();
    List<Token> shown = Sought.withoutSubqueries(tokens);
    List<Sought> found = new ArrayList<>();
    for (Reference table : references(outer, Math.max(from(outer), 0))) {
      String name = named(table.name);
      Map<String, String> key = name == null ? Map.of() : keys.getOrDefault(name, Map.of());
      Sought sought = name == null || key.isEmpty() ? null : Sought.of(name, key, shown);
      if (sought != null) {
        found.add(sought);
      }
    }
    return found;
  }

  /** Returns where the tables of the outermost query begin; -1 where it has none. */
  private static int from(List<Token> outer) {
    for (int nth = 0; nth < outer.size(); nth++) {
      if (outer.get(nth).word().equals("FROM")) {
        return nth;
      }
    }
    return -1;
  }

  /** Returns whether a row of the result is more than one row of each table, or of several. */
  private static boolean isMade(List<Token> tokens, List<Token> outer) {
    for (int nth = 0; nth < outer.size() - 1; nth++) {
      if (MADE.contains(outer.get(nth).word()) || outer.get(nth).is(";")) {
        return true;
      }
    }
    for (int nth = 0; nth < tokens.size() - 1; nth++) {
      if (AGGREGATES.contains(tokens.get(nth).word()) && tokens.get(nth + 1).is("(")) {
        return true;
      }
    }
    return false;
  }

  /** Returns the tables of the outermost {@code FROM}. */
  private static List<Reference> references(List<Token> outer, int from) {
    List<Reference> tables = new ArrayList<>();
    boolean isDue = true;
    for (int at = from + 1; at < outer.size(); ) {
      Token token = outer.get(at);
      if (TABLES_END.contains(token.word())) {
        break;
      }
      if (isDue && mayName(token)) {
        Reference table = reference(outer, at);
        tables.add(table);
        at = table.end;
        isDue = false;
      } else {
        isDue = JOINS.contains(token.word()) || token.is(",");
        at++;
      }
    }
    return tables;
  }

  private static boolean mayName(Token token) {
    return token.kind() == Kind.NAME
        || (token.kind() == Kind.WORD && !NO_ALIAS.contains(token.word()));
  }

  private static Reference reference(List<Token> outer, int start) {
    StringBuilder name = new StringBuilder(outer.get(start).named());
    StringBuilder alias = new StringBuilder(outer.get(start).text());
    int at = start + 1;
    while (at + 1 < outer.size() && outer.get(at).is(".")) {
      name.append('.').append(outer.get(at + 1).named());
      alias.append('.').append(outer.get(at + 1).text());
      at += 2;
    }
    if (at < outer.size() && outer.get(at).word().equals("PARTITION")) {
      at += 3;
    }
    if (at < outer.size() && outer.get(at).word().equals("AS")) {
      at++;
    }
    if (at < outer.size() && mayName(outer.get(at))) {
      return new Reference(name.toString(), outer.get(at).text(), at + 1);
    }
    return new Reference(name.toString(), alias.toString(), at);
  }
}
