package io.antipode.mysql;

import io.antipode.mysql.Sought.Literal;
import java.util.ArrayList;
import java.util.List;

/**
 * The question for the lineages that the deletions of rows left.
 *
 * @param parameters which of the query's parameters each of its own is
 */
record Tombstones(String sql, List<Integer> parameters) {
  /** How long a key may be that is kept as it is; a longer one is hashed. */
  private static final int KEY_BYTES = 512;

  /** Returns the question for rows that a query asked for. */
  static Tombstones of(Sought sought) {
    Text text = new Text();
    String table = sought.table();
    int dot = table.lastIndexOf('.');
    text.sql
        .append("SELECT l FROM ")
        .append(dot < 0 ? "" : quoted(table.substring(0, dot)) + ".")
        .append("`antipode_tombstone` WHERE t = ")
        .append(literal(table.substring(dot + 1)))
        .append(" AND k IN (");
    for (int nth = 0; nth < sought.keys().size(); nth++) {
      text.sql.append(nth == 0 ? "" : ", ");
      text.row(sought.keys().get(nth));
    }
    return new Tombstones(text.sql.append(')').toString(), List.copyOf(text.parameters));
  }

  private static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  /** Returns a text of SQL. */
  static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'";
  }

  /** Returns a row's key of these values, as triggers spell it. */
  static String key(List<String> values) {
    Text text = new Text();
    text.row(values.stream().map(each -> new Literal(each, 0, "")).toList());
    return text.sql.toString();
  }

  /** The text, as triggers spell a row's key. */
  private static final class Text {
    private final StringBuilder sql = new StringBuilder();
    private final List<Integer> parameters = new ArrayList<>();

    void row(List<Literal> key) {
      sql.append("IF(LENGTH(");
      key(key);
      sql.append(") > " + KEY_BYTES + ", SHA2(");
      key(key);
      sql.append(", 512), ");
      key(key);
      sql.append(')');
    }

    /** One value, or several, each after its length. */
    private void key(List<Literal> key) {
      if (key.size() == 1) {
        bytes(key.get(0));
        return;
      }
      sql.append("CONCAT_WS(':'");
      for (Literal each : key) {
        sql.append(", LENGTH(");
        bytes(each);
        sql.append("), ");
        bytes(each);
      }
      sql.append(')');
    }

    /** As bytes, so that 1 and '1' are alike. */
    private void bytes(Literal value) {
      sql.append("CAST(");
      if (value.charset().isEmpty()) {
        value(value);
      } else {
        sql.append("CONVERT(");
        value(value);
        sql.append(" USING ").append(value.charset()).append(')');
      }
      sql.append(" AS BINARY)");
    }

    private void value(Literal value) {
      sql.append(value.sent());
      if (value.parameter() > 0) {
        parameters.add(value.parameter());
      }
    }
  }
}
