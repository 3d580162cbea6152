package io.antipode.mysql;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A word, name, number, text or mark of a statement.
 *
 * @param at where it begins
 * @param depth in how many parentheses it stands
 * @param parameter which of the statement's parameters it stands for; 0 for none
 */
record Token(Kind kind, String text, int at, int depth, int parameter) {
  /** What it is. */
  enum Kind {
    TEXT,
    NAME,
    WORD,
    NUMBER,
    MARK
  }

  /** What is never closed reaches to the end; possessive, so that all of it is linear. */
  private static final Pattern PATTERN =
      Pattern.compile(
          "(?<text>'(?:[^'\\\\]++|\\\\(?:.|\\z)|'')*+(?:'|\\z)"
              + "|\"(?:[^\"\\\\]++|\\\\(?:.|\\z)|\"\")*+(?:\"|\\z))"
              + "|(?<skip>\\s++|/\\*(?!M?!).*?(?:\\*/|\\z)|(?:#|--(?=\\s))[^\\n]*+)"
              + "|(?<name>`(?:[^`]++|``)++`)"
              + "|(?<word>[A-Za-z_$@\\x{80}-\\x{10ffff}][\\w$@\\x{80}-\\x{10ffff}]*+)"
              + "|(?<number>\\d[\\w.]*+)"
              + "|(?<mark>.)",
          Pattern.DOTALL);

  /** Returns the tokens of a statement, without white space and comments. */
  static List<Token> of(String sql) {
    List<Token> tokens = new ArrayList<>();
    Matcher match = PATTERN.matcher(sql);
    int depth = 0;
    int parameters = 0;
    while (match.find()) {
      if (match.group("skip") != null) {
        continue;
      }
      String text = match.group();
      Kind kind = kind(match);
      boolean isMark = kind == Kind.MARK;
      if (isMark && text.equals(")")) {
        depth--;
      }
      int parameter = isMark && text.equals("?") ? ++parameters : 0;
      tokens.add(new Token(kind, text, match.start(), depth, parameter));
      if (isMark && text.equals("(")) {
        depth++;
      }
    }
    return tokens;
  }

  private static Kind kind(Matcher match) {
    for (Kind kind : Kind.values()) {
      if (match.group(kind.name().toLowerCase(Locale.ROOT)) != null) {
        return kind;
      }
    }
    throw new IllegalStateException(match.group());
  }

  /** Returns the word in capitals; empty where it is none. */
  String word() {
    return kind == Kind.WORD ? text.toUpperCase(Locale.ROOT) : "";
  }

  boolean is(String mark) {
    return kind == Kind.MARK && text.equals(mark);
  }

  /** Returns the name that it spells, quoted or not. */
  String named() {
    return kind == Kind.NAME ? text.substring(1, text.length() - 1).replace("``", "`") : text;
  }
}
