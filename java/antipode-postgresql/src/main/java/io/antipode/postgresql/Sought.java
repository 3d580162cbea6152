package io.antipode.postgresql;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PGobject;

/**
 * The rows that a statement asks for by their keys, by its text and its parameters: for the
 * deletions of rows that are not found, and of rows whose keys are not shown. Where a text names
 * several values of a column it is every combination: one key too many costs little.
 *
 * @param keys that it compares with literals or parameters by {@code =} or {@code IN}
 * @param isAll whether these are all: none was too many, or could not be read
 */
record Sought(List<List<String>> keys, boolean isAll) {
  /** How many keys of one statement are sought in a table. */
  static final int MOST = 1_000;

  /** What is never closed reaches to the end. */
  private static final Pattern TOKEN =
      Pattern.compile(
          "(?<skip>\\s+|--[^\\r\\n]*|/\\*.*?(?:\\*/|\\z))"
              + "|(?<odd>[eE]'(?:[^'\\\\]|\\\\.|'')*+(?:'|\\z)"
              + "|(?:[bBxXnN]|[uU]&)'(?:[^']|'')*+(?:'|\\z)"
              + "|\\$(?<tag>(?:[^\\W\\d]\\w*)?)\\$.*?(?:\\$\\k<tag>\\$|\\z))"
              + "|(?<text>'(?:[^']|'')*+(?:'|\\z))"
              + "|(?<name>\"(?:[^\"]|\"\")*+(?:\"|\\z))"
              + "|(?<word>[^\\W\\d][\\w$]*)"
              + "|(?<operator>\\?\\?)"
              + "|(?<parameter>\\?)"
              + "|(?<number>-?\\d[\\w.]*)"
              + "|(?<mark>::|.)",
          Pattern.DOTALL | Pattern.UNICODE_CHARACTER_CLASS);

  private static final Set<String> TRUE = Set.of("t", "true", "y", "yes", "on", "1");
  private static final Set<String> FALSE = Set.of("f", "false", "n", "no", "off", "0");
  private static final Pattern DIGITS = Pattern.compile("[0-9a-f]{32}");

  /** The longest text of a number that has a meaning as a key. */
  private static final int LONGEST_NUMBER = 100;

  private enum Kind {
    ODD,
    TEXT,
    NAME,
    WORD,
    OPERATOR,
    PARAMETER,
    NUMBER,
    MARK
  }

  /** A word of a statement; a parameter has its place. */
  private record Token(Kind kind, String text, int place) {
    boolean is(String mark) {
      return text.equalsIgnoreCase(mark);
    }

    boolean isColumn(String column) {
      if (kind == Kind.NAME && text.length() > 1) {
        return text.substring(1, text.length() - 1).replace("\"\"", "\"").equals(column);
      }
      return kind == Kind.WORD && text.toLowerCase(Locale.ROOT).equals(column);
    }
  }

  /**
   * Returns what a statement asks for in a table.
   *
   * @param parameters by their places, from 1
   */
  static Sought of(String sql, Map<Integer, Object> parameters, StoredTable table) {
    return new Reader(tokens(sql), parameters).keys(table);
  }

  private static List<Token> tokens(String sql) {
    List<Token> found = new ArrayList<>();
    Matcher token = TOKEN.matcher(sql);
    int place = 0;
    while (token.find()) {
      for (Kind kind : Kind.values()) {
        if (token.group(kind.name().toLowerCase(Locale.ROOT)) != null) {
          place += kind == Kind.PARAMETER ? 1 : 0;
          found.add(new Token(kind, token.group(), place));
        }
      }
    }
    return found;
  }

  /** Reads one statement. */
  private static final class Reader {
    private final List<Token> tokens;
    private final Map<Integer, Object> parameters;

    /** Whether it is known which parameter is at which place. */
    private final boolean isAligned;

    private boolean isAll = true;

    Reader(List<Token> tokens, Map<Integer, Object> parameters) {
      this.tokens = tokens;
      this.parameters = parameters;
      int places = tokens.isEmpty() ? 0 : tokens.get(tokens.size() - 1).place();
      this.isAligned = places == parameters.size();
    }

    Sought keys(StoredTable table) {
      List<List<String>> keys = List.of(List.of());
      for (int nth = 0; nth < table.columns().size(); nth++) {
        keys = longer(keys, equal(table.columns().get(nth), table.types().get(nth)));
      }
      return new Sought(keys, isAll);
    }

    /** Returns each of some keys with each of some values. */
    private List<List<String>> longer(List<List<String>> keys, List<String> values) {
      List<List<String>> longer = new ArrayList<>();
      for (List<String> begun : keys) {
        for (String value : values) {
          if (longer.size() == MOST) {
            isAll = false;
            return longer;
          }
          List<String> one = new ArrayList<>(begun);
          one.add(value);
          longer.add(one);
        }
      }
      return longer;
    }

    /** Returns what a column is compared with. */
    private List<String> equal(String column, int type) {
      List<String> found = new ArrayList<>();
      for (int nth = 0; nth < tokens.size() - 2 && found.size() <= MOST; nth++) {
        if (!tokens.get(nth).isColumn(column)) {
          continue;
        }
        if (tokens.get(nth + 1).is("=")) {
          add(found, nth + 2, type);
        } else if (tokens.get(nth + 1).is("IN") && tokens.get(nth + 2).is("(")) {
          addAll(found, nth + 3, type);
        }
      }
      return found;
    }

    /** Adds each value of a list, up to its end. */
    private void addAll(List<String> found, int start, int type) {
      boolean isValue = true;
      for (int nth = start; nth < tokens.size() && found.size() <= MOST; nth++) {
        Token token = tokens.get(nth);
        if (token.is(")")) {
          return;
        }
        if (token.is("(")) {
          isAll = false; // What a call or a query gives is not known.
          return;
        }
        if (isValue) {
          add(found, nth, type);
        }
        isValue = token.is(",");
      }
    }

    private void add(List<String> found, int nth, int type) {
      Token token = tokens.get(nth);
      boolean isBare = type == StoredTable.BOOLEAN || StoredTable.INTEGERS.contains(type);
      String value = null;
      boolean isKnown = true;
      if (token.kind() == Kind.PARAMETER) {
        Object given = isAligned ? parameters.get(token.place()) : null;
        value = given == null ? null : spelled(text(given), type);
        isKnown = given == Sent.NULL || value != null;
      } else if (token.kind() == Kind.TEXT && token.text().length() > 1) {
        String text = token.text();
        value = spelled(text.substring(1, text.length() - 1).replace("''", "'"), type);
        isKnown = value != null;
      } else if (token.kind() == Kind.ODD) {
        isKnown = false;
      } else if (isBare && (token.kind() == Kind.NUMBER || token.kind() == Kind.WORD)) {
        value = spelled(token.text(), type);
      }
      isAll &= isKnown && !(value != null && isCalculated(nth + 1));
      if (value != null) {
        found.add(value);
      }
    }

    /** Returns whether something is calculated with what was before a word. */
    private boolean isCalculated(int nth) {
      return nth < tokens.size() && "+-*/%|&#^".contains(tokens.get(nth).text().substring(0, 1));
    }

    /** Returns what the driver sends for a parameter; null where that is not known. */
    private static @Nullable String text(Object given) {
      return given instanceof CharSequence
              || given instanceof Number
              || given instanceof Boolean
              || given instanceof UUID
              || given instanceof PGobject
          ? given.toString()
          : null;
    }
  }

  /** Returns the text of a key's value of a type, as the server has it; null for none. */
  static @Nullable String spelled(@Nullable String value, int type) {
    if (value == null) {
      return null;
    }
    String folded = value.strip().toLowerCase(Locale.ROOT);
    if (StoredTable.INTEGERS.contains(type)) {
      try {
        return folded.length() > LONGEST_NUMBER ? null : new BigInteger(folded).toString();
      } catch (NumberFormatException error) {
        return null;
      }
    }
    if (type == StoredTable.UUID) {
      String digits = folded.replaceAll("[{}-]", "");
      return DIGITS.matcher(digits).matches()
          ? digits.replaceFirst("(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5")
          : null;
    }
    if (type == StoredTable.BOOLEAN) {
      return TRUE.contains(folded) ? "true" : FALSE.contains(folded) ? "false" : null;
    }
    return value;
  }
}
