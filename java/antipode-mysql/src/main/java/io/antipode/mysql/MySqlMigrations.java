package io.antipode.mysql;

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
 * are those that {@code python -m antipode_shims.mysql migration} prints.
 *
 * <p>As a program it prints them: {@code java -cp antipode-mysql.jar
 * io.antipode.mysql.MySqlMigrations promises orders(id) shop.items(shop,item)}, each table with the
 * columns of its primary key. In a migration in Java, as Flyway has them, {@link #rows(Connection,
 * String)} asks for these.
 */
public final class MySqlMigrations {
  private static final String BETWEEN = ";\n\n";

  /** How many characters of a table's name its triggers' have. */
  private static final int TRIGGER_NAME = 50;

  private static final String KEY =
      "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"
          + " WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?"
          + " AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION";

  private MySqlMigrations() {}

  /** Returns what makes the table of promises. */
  public static List<String> promises() {
    return statements("promises");
  }

  /**
   * Returns what lets a table keep lineages with its rows, from MySQL 8.0.23 and MariaDB 10.3 on.
   * Who runs it needs {@code ALTER}, {@code CREATE} and {@code TRIGGER}, and where there is a
   * binary log {@code SUPER} or {@code log_bin_trust_function_creators=ON}. The service's user
   * needs {@code SELECT} on {@code antipode_tombstone}.
   *
   * @param named {@code table} or {@code schema.table}
   * @param key the columns of its primary key, in their order
   */
  public static List<String> rows(String named, List<String> key) {
    if (key.isEmpty()) {
      throw new ConfigurationException("'" + named + "' has no primary key");
    }
    int dot = named.lastIndexOf('.');
    String schema = dot < 0 ? "" : Records.quoted(named.substring(0, dot)) + ".";
    String table = named.substring(dot + 1);
    String trigger = table.substring(0, Math.min(table.length(), TRIGGER_NAME));
    String oldKey =
        Tombstones.key(key.stream().map(each -> "OLD." + Records.quoted(each)).toList());
    return statements("rows").stream()
        .map(
            each ->
                each.replace("@old_key@", oldKey)
                    .replace("`@table@_ap", "`" + quoted(trigger) + "_ap")
                    .replace("'@table@'", Tombstones.literal(table))
                    .replace("@table@", quoted(table))
                    .replace("@schema@", schema))
        .toList();
  }

  /**
   * Returns the same of a table that is there, whose key is asked for.
   *
   * @throws ConfigurationException if there is no such table, or it has no primary key
   * @throws SQLException as the driver does
   */
  public static List<String> rows(Connection connection, String named) throws SQLException {
    int dot = named.lastIndexOf('.');
    try (PreparedStatement question = connection.prepareStatement(KEY)) {
      question.setString(1, dot < 0 ? null : named.substring(0, dot));
      question.setString(2, named.substring(dot + 1));
      try (ResultSet found = question.executeQuery()) {
        List<String> key = new ArrayList<>();
        while (found.next()) {
          key.add(found.getString(1));
        }
        return rows(named, key);
      }
    }
  }

  private static String quoted(String name) {
    return name.replace("`", "``");
  }

  private static List<String> statements(String name) {
    try (InputStream text = MySqlMigrations.class.getResourceAsStream(name + ".sql")) {
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
      all.addAll(each.equals("promises") ? promises() : rows(each));
    }
    System.out.println(String.join(BETWEEN, all) + ";");
  }

  /** Returns the statements of {@code [schema.]table(column,...)}. */
  private static List<String> rows(String described) {
    int open = described.indexOf('(');
    if (open < 0 || !described.endsWith(")")) {
      throw new ConfigurationException(
          "'" + described + "' is neither promises nor table(column,...)");
    }
    String[] key = described.substring(open + 1, described.length() - 1).split(",", -1);
    return rows(
        described.substring(0, open),
        Arrays.stream(key).map(String::strip).filter(each -> !each.isEmpty()).toList());
  }
}
