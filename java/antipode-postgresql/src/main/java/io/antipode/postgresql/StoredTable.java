package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collector;
import java.util.stream.Collectors;

/**
 * A table of the application's whose rows have stored lineages, as a server describes it. A side
 * table has their lineages, which triggers write; {@link PostgreSqlMigrations} has what makes both.
 *
 * @param named as the application named it
 * @param columns of its primary key, in their order
 * @param types the numbers of their types
 */
record StoredTable(
    String named, String schema, String name, List<String> columns, List<Integer> types) {
  static final int BOOLEAN = 16;
  static final int UUID = 2950;
  static final Set<Integer> INTEGERS = Set.of(20, 21, 23);
  private static final Set<Integer> TEXTS = Set.of(25, 1043);

  /** Before the texts that a question finds: of NULL and of the empty text a link says the same. */
  static final String FOUND = "+";

  private static final String SUFFIX = "_ap";
  private static final String COMMENT = "antipode 1";
  private static final String TOMBSTONES = "antipode_tombstone";

  /** How many bytes of a key are stored; of a longer one it is a digest. */
  private static final int KEY_BYTES = 512;

  /** What the triggers' name has of the table's. */
  private static final int TRIGGER_NAME = 48;

  private static final Collector<CharSequence, ?, String> LIST = Collectors.joining(", ");

  private static final String DESCRIBED =
      "SELECT n.nspname AS schema, c.relname AS name, c.relkind AS kind,"
          + " EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid)) AS"
          + " inherits, coalesce(x.indimmediate, true) AS immediate, a.attname AS column,"
          + " a.atttypid AS type, s.oid AS side,"
          + " coalesce(has_table_privilege(s.oid, 'select'), false) AS readable,"
          + " coalesce(has_table_privilege(to_regclass(format('%I.%I', n.nspname, '"
          + TOMBSTONES
          + "')), 'select'), false) AS buried,"
          + " array_to_string(ARRAY(SELECT g.tgname FROM pg_trigger g WHERE g.tgrelid = c.oid"
          + " AND g.tgenabled IN ('O', 'A') AND NOT g.tgisinternal), ' ') AS triggers"
          + " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
          + " LEFT JOIN pg_class s ON s.relnamespace = n.oid AND s.relname = c.relname || '"
          + SUFFIX
          + "' AND obj_description(s.oid, 'pg_class') = '"
          + COMMENT
          + "' LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary"
          + " LEFT JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS u (number, place)"
          + " ON u.place <= x.indnkeyatts"
          + " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number"
          + " WHERE c.oid = to_regclass(";

  /**
   * Asks what a table is, and makes sure that it can keep lineages.
   *
   * @param named {@code table} or {@code schema.table}
   * @throws ConfigurationException if it cannot; says what to run
   * @throws SQLException as the driver does
   */
  static StoredTable described(Link link, String named, String datastore) throws SQLException {
    List<Map<String, String>> rows = link.ask(DESCRIBED + literal(named) + ") ORDER BY u.place");
    if (rows.isEmpty()) {
      throw new ConfigurationException("there is no table '" + named + "'");
    }
    String refused = refused(rows);
    if (!refused.isEmpty()) {
      throw new ConfigurationException("'" + named + "' cannot keep lineages: " + refused);
    }
    Map<String, String> first = rows.get(0);
    StoredTable table =
        new StoredTable(
            named,
            first.getOrDefault("schema", ""),
            first.getOrDefault("name", ""),
            rows.stream().map(row -> row.getOrDefault("column", "")).toList(),
            rows.stream().map(row -> Integer.valueOf(row.getOrDefault("type", "0"))).toList());
    List<String> lacks = table.lacks(first);
    if (!lacks.isEmpty()) {
      throw new ConfigurationException(
          "'"
              + datastore
              + "' cannot store lineages with "
              + named
              + ": it lacks "
              + String.join(", ", lacks)
              + ". The library changes no schema on its own: PostgreSqlMigrations.rows has what to"
              + " run, and as a program prints it for '"
              + named
              + "("
              + String.join(",", table.columns)
              + ")'");
    }
    return table;
  }

  private static String refused(List<Map<String, String>> rows) {
    Map<String, String> first = rows.get(0);
    if (!first.getOrDefault("kind", "").equals("r")
        || first.getOrDefault("inherits", "").equals("t")) {
      return "it is no plain table: partitions, parents, views and foreign tables keep none";
    }
    if (first.getOrDefault("column", "").isEmpty()) {
      return "it has no primary key";
    }
    if (!first.getOrDefault("immediate", "").equals("t")) {
      return "its primary key is DEFERRABLE: two rows may have one key for a while";
    }
    for (Map<String, String> row : rows) {
      int type = Integer.parseInt(row.getOrDefault("type", "0"));
      if (type != BOOLEAN && type != UUID && !INTEGERS.contains(type) && !TEXTS.contains(type)) {
        return "the column '"
            + row.getOrDefault("column", "")
            + "' of its primary key is no number, text, boolean or UUID";
      }
    }
    return "";
  }

  private List<String> lacks(Map<String, String> first) {
    List<String> lacks = new ArrayList<>();
    if (first.getOrDefault("side", "").isEmpty()) {
      lacks.add("the side table " + name + SUFFIX);
    } else if (!first.getOrDefault("readable", "").equals("t")) {
      lacks.add("this user's SELECT on " + name + SUFFIX);
    }
    List<String> there = List.of(first.getOrDefault("triggers", "").split(" ", -1));
    String rows = "0_" + name.substring(0, Math.min(name.length(), TRIGGER_NAME)) + SUFFIX;
    for (String trigger : List.of(rows, rows + "_truncate")) {
      if (!there.contains(trigger)) {
        lacks.add("trigger " + trigger);
      }
    }
    if (!first.getOrDefault("buried", "").equals("t")) {
      lacks.add(TOMBSTONES + ", or this user's SELECT on it");
    }
    return lacks;
  }

  /**
   * Returns the question for the lineages of rows: of those that are there and of those that were
   * deleted, for a row that was read may be deleted by now, and perhaps another is under its key.
   *
   * @param keys the values of the columns of each, as literals
   * @param isShown whether the rows were shown
   * @param isSame whether the transaction that asks is the one that read. If that has one snapshot,
   *     a row that was shown is there: an earlier deletion under its key is nobody's
   */
  String asking(List<List<String>> keys, boolean isShown, boolean isSame) {
    List<String> names = new ArrayList<>();
    for (int nth = 0; nth < columns.size(); nth++) {
      names.add("c" + nth);
    }
    String rows =
        keys.stream()
            .map(key -> "(" + key.stream().map(each -> each + "::text").collect(LIST) + ")")
            .collect(LIST);
    return "SELECT '"
        + FOUND
        + "' || string_agg(DISTINCT CASE WHEN s.l IS NOT NULL OR d.l IS NOT NULL"
        + " THEN concat_ws(',', s.l, d.l) END, ',') AS lineages,"
        + " count(*) FILTER (WHERE "
        + isShown
        + " AND s.l IS NULL AND d.l IS NULL) AS absent FROM (SELECT "
        + key(names.stream().map(each -> "v." + each).toList())
        + " AS k FROM (VALUES "
        + rows
        + ") AS v ("
        + String.join(", ", names)
        + ")) AS q LEFT JOIN "
        + beside(name + SUFFIX)
        + " AS s ON s.k = q.k LEFT JOIN "
        + beside(TOMBSTONES)
        + " AS d ON d.t = "
        + literal(name)
        + " AND d.k = q.k AND NOT ("
        + (isShown && isSame)
        + " AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable'))";
  }

  /** Returns what identifies a row: its one value, or several, each after its length; as bytes. */
  static String key(List<String> values) {
    String text =
        values.size() == 1
            ? values.get(0)
            : values.stream()
                .map(each -> "octet_length(" + each + ") || ':' || " + each)
                .collect(Collectors.joining(" || ':' || "));
    String key = "convert_to(" + text + ", getdatabaseencoding())";
    return "CASE WHEN octet_length("
        + key
        + ") > "
        + KEY_BYTES
        + " THEN convert_to(encode(sha512("
        + key
        + "), 'hex'), getdatabaseencoding()) ELSE "
        + key
        + " END";
  }

  private String beside(String other) {
    return identifier(schema) + "." + identifier(other);
  }

  private static String identifier(String name) {
    return "\"" + name.replace("\"", "\"\"") + "\"";
  }

  /**
   * Returns a text; of names alone, which have no backslash that a setting would read otherwise.
   */
  private static String literal(String text) {
    return "'" + text.replace("'", "''") + "'";
  }
}
