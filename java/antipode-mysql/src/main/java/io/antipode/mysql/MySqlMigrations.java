package io.antipode.mysql;

import io.antipode.jdbc.Migrations;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;

/**
 * The statements that a database needs, for whoever runs migrations: the library runs none. They
 * are those that {@code python -m antipode_shims.mysql migration} prints.
 *
 * <p>As a program, with its dependencies, it prints them: {@code java -cp 'target/dependency/*'
 * io.antipode.mysql.MySqlMigrations promises orders(id) shop.items(shop,item)}, each table with the
 * columns of its primary key. In a migration in Java, as Flyway has them, {@link #rows(Connection,
 * String)} asks for these.
 */
public final class MySqlMigrations {
  private static final Migrations TEXTS = new Migrations(MySqlMigrations.class, "promises");

  /** How many characters of a table's name its triggers' have. */
  private static final int TRIGGER_NAME = 50;

  private static final String KEY =
      "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"
          + " WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?"
          + " AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION";

  private MySqlMigrations() {}

  /** Returns what makes the table of promises. */
  public static List<String> promises() {
    return TEXTS.statements("promises");
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
    int dot = named.lastIndexOf('.');
    String schema = dot < 0 ? "" : Records.quoted(named.substring(0, dot)) + ".";
    String table = named.substring(dot + 1);
    String trigger = table.substring(0, Math.min(table.length(), TRIGGER_NAME));
    return TEXTS.rows(
        named,
        key,
        each ->
            each.replace("@old_key@", oldKey(key))
                .replace("`@table@_ap", "`" + quoted(trigger) + "_ap")
                .replace("'@table@'", Tombstones.literal(table))
                .replace("@table@", quoted(table))
                .replace("@schema@", schema));
  }

  /**
   * Returns the same of a table that is there, whose key is asked for.
   *
   * @throws io.antipode.ConfigurationException if there is no such table, or it has no primary key
   * @throws SQLException as the driver does
   */
  public static List<String> rows(Connection connection, String named) throws SQLException {
    int dot = named.lastIndexOf('.');
    String schema = dot < 0 ? null : named.substring(0, dot);
    return rows(
        named,
        Migrations.ask(connection, KEY, schema, named.substring(dot + 1)).stream()
            .map(each -> each.get(0))
            .toList());
  }

  private static String oldKey(List<String> key) {
    return Tombstones.key(key.stream().map(each -> "OLD." + Records.quoted(each)).toList());
  }

  private static String quoted(String name) {
    return name.replace("`", "``");
  }

  /** Prints what the arguments name. */
  public static void main(String[] arguments) {
    TEXTS.print(arguments, MySqlMigrations::rows);
  }
}
