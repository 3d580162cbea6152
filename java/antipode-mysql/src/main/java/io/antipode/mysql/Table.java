package io.antipode.mysql;

import io.antipode.Settings;
import io.antipode.runtime.Time;
import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Values with their lineage in an invisible column of the same row.
 *
 * <p>In front of the lineage are nine bytes of a digest of the value, by which a value that a plain
 * client changed is recognized, and a byte that each write changes: a row that stays as it was is
 * no transaction, and has no position. A deletion leaves its lineage in a table of tombstones.
 */
final class Table {
  static final List<String> DDL =
      List.of(
          "CREATE TABLE IF NOT EXISTS `antipode_kv` (`k` VARBINARY(512) NOT NULL PRIMARY KEY, `v`"
              + " LONGBLOB NOT NULL, `_ap` MEDIUMBLOB NULL INVISIBLE)",
          "CREATE TABLE IF NOT EXISTS `antipode_tombstone` (t VARBINARY(256) NOT NULL, k"
              + " VARBINARY(512) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL,"
              + " n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))",
          Records.ddl());

  private static final String NAME = "antipode_kv";
  private static final int HEAD = 10;
  private static final String DIGEST = "LEFT(UNHEX(SHA2(`v`, 256)), 9)";
  private static final String WRITE =
      "INSERT INTO `antipode_kv` (`k`, `v`, `_ap`) VALUES (?, ?, CONCAT("
          + DIGEST
          + ", CHAR(0), ?)) ON DUPLICATE KEY UPDATE `_ap` = INSERT(VALUES(`_ap`), 10, 1,"
          + " CHAR((COALESCE(ASCII(SUBSTRING(`_ap`, 10, 1)), 0) + 1) & 255)), `v` = VALUES(`v`)";
  private static final String BURY =
      "INSERT INTO `antipode_tombstone` (t, k, l, h, n) VALUES (?, ?, ?, ?, 0)"
          + " ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535";
  private static final String DELETE = "DELETE FROM `antipode_kv` WHERE `k` = ?";

  /** How many tombstones whose time is over a deletion takes along. */
  private static final String OLD =
      "SELECT t, k FROM `antipode_tombstone` WHERE h < ? ORDER BY h LIMIT 8 FOR UPDATE SKIP LOCKED";

  private static final String SWEEP =
      "DELETE FROM `antipode_tombstone` WHERE t = ? AND k = ? AND h < ?";
  private static final String READ =
      "SELECT `v`, `_ap`, LEFT(`_ap`, 9) = " + DIGEST + " AS own FROM `antipode_kv` WHERE `k` = ?";
  private static final String BURIED = "SELECT l FROM `antipode_tombstone` WHERE t = ? AND k = ?";

  private Table() {}

  /**
   * A row.
   *
   * @param texts the lineages stored with the value; null where there are none
   * @param isOwn whether they are those of the value
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares rows.
  record Row(byte[] value, @Nullable String texts, boolean isOwn) {}

  static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.UTF_8);
  }

  /** Replaces the value and its lineage: one statement. */
  static void write(Link link, String key, byte[] value, String lineage) throws SQLException {
    int ignored = link.update(WRITE, bytes(key), value, lineage);
  }

  /** Deletes a value and leaves its lineage; the tombstone first, so that absence is never bare. */
  static void delete(Link link, String key, String lineage) throws SQLException {
    long hour = Time.hour();
    long expires = hour + Settings.current().horizon().toHours() + 1;
    int ignored = link.update(BURY, bytes(NAME), bytes(key), bytes(lineage), expires);
    ignored = link.update(DELETE, bytes(key));
    // Two deletions that wait for each other's old tombstones would be a deadlock.
    for (Map.Entry<byte[], byte[]> each :
        link.query(OLD, row -> Map.entry(row.getBytes("t"), row.getBytes("k")), hour)) {
      ignored = link.update(SWEEP, each.getKey(), each.getValue(), hour);
    }
  }

  static @Nullable Row read(Link link, String key) throws SQLException {
    List<Row> rows = link.query(READ, Table::row, bytes(key));
    return rows.isEmpty() ? null : rows.get(0);
  }

  private static Row row(ResultSet row) throws SQLException {
    byte[] beside = row.getBytes("_ap");
    String texts =
        beside == null
            ? null
            : new String(
                beside,
                Math.min(HEAD, beside.length),
                Math.max(beside.length - HEAD, 0),
                StandardCharsets.US_ASCII);
    return new Row(row.getBytes("v"), texts, row.getBoolean("own"));
  }

  /** Returns the lineage that a deletion left; null for none. */
  static @Nullable String buried(Link link, String key) throws SQLException {
    List<String> texts =
        link.query(
            BURIED,
            row -> new String(row.getBytes("l"), StandardCharsets.US_ASCII),
            bytes(NAME),
            bytes(key));
    return texts.isEmpty() ? null : texts.get(0);
  }
}
