package io.antipode.postgresql;

import io.antipode.jdbc.Migrations;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;

/**
 * The statements that a database needs, for whoever runs migrations: the library runs none. They
 * are those that {@code python -m antipode_shims.postgresql migration} prints.
 *
 * <p>As a program, with its dependencies, it prints them: {@code java -cp 'target/dependency/*'
 * io.antipode.postgresql.PostgreSqlMigrations promises history orders(id) shop.items(shop,item)},
 * each table with the columns of its primary key. In a migration in Java, as Flyway has them,
 * {@link #rows(Connection, String)} asks for these.
 */
public final class PostgreSqlMigrations {
  private static final Migrations TEXTS =
      new Migrations(PostgreSqlMigrations.class, "promises", "history");

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
    return TEXTS.statements("promises");
  }

  /**
   * Returns what lets a plain user read the histories of timelines, at the primary and so at each
   * standby. A superuser runs it: without it what was written before a fail-over stays unknown.
   */
  public static List<String> history() {
    return TEXTS.statements("history");
  }

  /**
   * Returns what lets a table keep lineages with its rows. The service's user needs {@code SELECT}
   * on what it makes: {@code TABLE_ap} and {@code antipode_tombstone}.
   *
   * @param schema of the table
   * @param key the columns of its primary key, in their order
   */
  public static List<String> rows(String schema, String table, List<String> key) {
    String trigger = table.substring(0, Math.min(table.length(), TRIGGER_NAME));
    return TEXTS.rows(
        table,
        key,
        each ->
            each.replace("@new_key@", key("NEW", key))
                .replace("@old_key@", key("OLD", key))
                .replace("\"0_@table@", "\"0_" + quoted(trigger))
                .replace("'@table@'", "'" + table.replace("'", "''") + "'")
                .replace("@table@", quoted(table))
                .replace("@schema@", quoted(schema)));
  }

  /**
   * Returns the same of a table that is there, whose key is asked for.
   *
   * @param named {@code table} or {@code schema.table}, as SQL has it
   * @throws io.antipode.ConfigurationException if there is no such table, or it has no primary key
   * @throws SQLException as the driver does
   */
  public static List<String> rows(Connection connection, String named) throws SQLException {
    List<List<String>> columns = Migrations.ask(connection, KEY, named);
    String schema = columns.isEmpty() ? "" : columns.get(0).get(0);
    String table = columns.isEmpty() ? named : columns.get(0).get(1);
    return rows(schema, table, columns.stream().map(each -> each.get(2)).toList());
  }

  private static String key(String row, List<String> columns) {
    return StoredTable.key(
        columns.stream().map(each -> row + ".\"" + quoted(each) + "\"::text").toList());
  }

  private static String quoted(String name) {
    return name.replace("\"", "\"\"");
  }

  /** Prints what the arguments name. */
  public static void main(String[] arguments) {
    TEXTS.print(arguments, PostgreSqlMigrations::described);
  }

  private static List<String> described(String named, List<String> key) {
    int dot = named.indexOf('.');
    String schema = dot < 0 ? "public" : named.substring(0, dot);
    return rows(schema, named.substring(dot + 1), key);
  }
}
