package io.antipode.mysql;

import io.antipode.mysql.Token.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rows that a query asks for by their keys.
 *
 * @param keys the values of the columns of each, in the order of the table's primary key
 */
record Sought(String table, List<List<Literal>> keys) {
  private static final int MOST = 100;

  /** A longer literal is no key: these have 3,072 bytes, which escapes or digits may double. */
  private static final int LONGEST = 8_192;

  private static final Set<String> SIGNS = Set.of("-", "X", "B", "N");

  /**
   * What a query compares a column with.
   *
   * @param sent as the statement has it
   * @param parameter which of its parameters that is; 0 for none
   * @param charset the column's character set; empty for what is no text
   */
  record Literal(String sent, int parameter, String charset) {}

  /** Returns the rows of a table; null where not all columns of its key are compared. */
  static @Nullable Sought of(String table, Map<String, String> key, List<Token> tokens) {
    List<List<Literal>> keys = List.of(List.of());
    for (Map.Entry<String, String> column : key.entrySet()) {
      List<Literal> values = equal(column.getKey(), column.getValue(), tokens);
      List<List<Literal>> longer = new ArrayList<>();
      for (List<Literal> begun : keys) {
        for (Literal value : values) {
          if (longer.size() < MOST) {
            List<Literal> one = new ArrayList<>(begun);
            one.add(value);
            longer.add(one);
          }
        }
      }
      keys = longer;
    }
    return keys.isEmpty() ? null : new Sought(table, keys);
  }

  /** Returns what is said of the outermost query's rows. */
  static List<Token> withoutSubqueries(List<Token> tokens) {
    List<Token> shown = new ArrayList<>();
    int hidden = 0;
    for (Token token : tokens) {
      if (hidden > 0 && token.depth() < hidden) {
        hidden = 0;
      }
      if (hidden == 0 && token.depth() > 0 && token.word().equals("SELECT")) {
        hidden = token.depth();
      }
      if (hidden == 0) {
        shown.add(token);
      }
    }
    return shown;
  }

  /** Returns the literals with which a query compares a column, by {@code =} or {@code IN}. */
  private static List<Literal> equal(String column, String charset, List<Token> tokens) {
    List<Literal> found = new ArrayList<>();
    for (int nth = 0; nth < tokens.size() - 1; nth++) {
      if (!tokens.get(nth).named().equalsIgnoreCase(column)) {
        continue;
      }
      Token mark = tokens.get(nth + 1);
      boolean isListed =
          mark.word().equals("IN") && nth + 2 < tokens.size() && tokens.get(nth + 2).is("(");
      if (isListed) {
        addListed(found, charset, tokens, nth + 3);
      } else if (mark.is("=")) {
        add(found, charset, tokens, nth + 2);
      }
    }
    return found;
  }

  /** Adds the literals of a list up to its end, or to what is none. */
  private static void addListed(
      List<Literal> found, String charset, List<Token> tokens, int start) {
    for (int at = start; at < tokens.size(); at++) {
      add(found, charset, tokens, at);
      int most = Math.min(at + 4, tokens.size());
      while (at < most && !tokens.get(at).is(",") && !tokens.get(at).is(")")) {
        at++;
      }
      if (at == most || tokens.get(at).is(")")) {
        return;
      }
    }
  }

  /** Adds the number, text or parameter that comes first, with what may stand before it. */
  private static void add(List<Literal> found, String charset, List<Token> tokens, int start) {
    StringBuilder literal = new StringBuilder();
    for (Token token : tokens.subList(start, Math.min(start + 3, tokens.size()))) {
      if (token.parameter() > 0 && literal.isEmpty()) {
        found.add(new Literal(token.text(), token.parameter(), charset));
        return;
      }
      literal.append(token.text());
      if (token.kind() == Kind.NUMBER || token.kind() == Kind.TEXT) {
        if (literal.length() <= LONGEST) {
          found.add(new Literal(literal.toString(), 0, charset));
        }
        return;
      }
      if (token.text().startsWith("_")) {
        literal.append(' '); // A character set: _binary X'00', _latin1 'x'.
      } else if (!SIGNS.contains(token.kind() == Kind.MARK ? token.text() : token.word())) {
        return;
      }
    }
  }
}
