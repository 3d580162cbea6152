package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The statements that a database needs, for whoever runs migrations: the library runs none. They
 * are those that {@code python -m antipode_shims.postgresql migration} prints.
 *
 * <p>As a program it prints them: {@code java -cp antipode-postgresql.jar
 * io.antipode.postgresql.PostgreSqlMigrations promises history orders(id) shop.items(shop,item)},
 * each table with the columns of its primary key. In a migration in Java, as Flyway has them,
 * {@link #rows(Connection, String)} asks for these.
 */
public final class PostgreSqlMigrations {
  private static final String BETWEEN = ";\n\n";

  /** How many characters of a table's name its triggers' have. */
  private static final int TRIGGER_NAME = 48;

  private static final String KEY =
      "SELECT n.nspname, c.relname, a.attname FROM pg_class c"
          + " JOIN pg_namespace n ON n.oid = c.relnamespace"
          + " JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary"
          + " JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS u (number, place)"
          + " ON u.place <= x.indnkeyatts"
          + " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number"
          + " WHERE c.oid = to_regclass(?) ORDER BY u.place";

  private PostgreSqlMigrations() {}

  /** Returns what makes the table of promises. */
  public static List<String> promises() {
    return statements("promises");
  }

  /**
   * Returns what lets a plain user read the histories of timelines, at the primary and so at each
   * standby. A superuser runs it: without it what was written before a fail-over stays unknown.
   */
  public static List<String> history() {
    return statements("history");
  }

  /**
   * Returns what lets a table keep lineages with its rows. The service's user needs {@code SELECT}
   * on what it makes: {@code TABLE_ap} and {@code antipode_tombstone}.
   *
   * @param schema of the table
   * @param key the columns of its primary key, in their order
   */
  public static List<String> rows(String schema, String table, List<String> key) {
    if (key.isEmpty()) {
      throw new ConfigurationException("'" + table + "' has no primary key");
    }
    String trigger = table.substring(0, Math.min(table.length(), TRIGGER_NAME));
    return statements("rows").stream()
        .map(
            each ->
                each.replace("@new_key@", key("NEW", key))
                    .replace("@old_key@", key("OLD", key))
                    .replace("\"0_@table@", "\"0_" + quoted(trigger))
                    .replace("'@table@'", "'" + table.replace("'", "''") + "'")
                    .replace("@table@", quoted(table))
                    .replace("@schema@", quoted(schema)))
        .toList();
  }

  /**
   * Returns the same of a table that is there, whose key is asked for.
   *
   * @param named {@code table} or {@code schema.table}, as SQL has it
   * @throws ConfigurationException if there is no such table, or it has no primary key
   * @throws SQLException as the driver does
   */
  public static List<String> rows(Connection connection, String named) throws SQLException {
    try (PreparedStatement question = connection.prepareStatement(KEY)) {
      question.setString(1, named);
      try (ResultSet found = question.executeQuery()) {
        List<String> key = new ArrayList<>();
        String schema = "";
        String table = named;
        while (found.next()) {
          schema = found.getString(1);
          table = found.getString(2);
          key.add(found.getString(3));
        }
        return rows(schema, table, key);
      }
    }
  }

  private static String key(String row, List<String> columns) {
    return StoredTable.key(
        columns.stream().map(each -> row + ".\"" + quoted(each) + "\"::text").toList());
  }

  private static String quoted(String name) {
    return name.replace("\"", "\"\"");
  }

  private static List<String> statements(String name) {
    try (InputStream text = PostgreSqlMigrations.class.getResourceAsStream(name + ".sql")) {
      if (text == null) {
        throw new IllegalStateException("the jar has no " + name + ".sql");
      }
      String all = new String(text.readAllBytes(), StandardCharsets.UTF_8).strip();
      return List.of(all.substring(0, all.length() - 1).split(BETWEEN, -1));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Prints what the arguments name. */
  public static void main(String[] arguments) {
    List<String> all = new ArrayList<>();
    for (String each : arguments) {
      all.addAll(
          each.equals("promises") ? promises() : each.equals("history") ? history() : rows(each));
    }
    System.out.println(String.join(BETWEEN, all) + ";");
  }

  /** Returns the statements of {@code [schema.]table(column,...)}. */
  private static List<String> rows(String described) {
    int open = described.indexOf('(');
    if (open < 0 || !described.endsWith(")")) {
      throw new ConfigurationException(
          "'" + described + "' is none of promises, history, and table(column,...)");
    }
    String named = described.substring(0, open);
    int dot = named.indexOf('.');
    String[] key = described.substring(open + 1, described.length() - 1).split(",", -1);
    return rows(
        dot < 0 ? "public" : named.substring(0, dot),
        named.substring(dot + 1),
        Arrays.stream(key).map(String::strip).filter(each -> !each.isEmpty()).toList());
  }
}
