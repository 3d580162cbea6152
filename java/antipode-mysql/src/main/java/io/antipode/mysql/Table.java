package io.antipode.mysql;

import io.antipode.Settings;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Time;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
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
final class Table extends Table2<Link> {
  static final List<String> DDL =
      List.of(
          "CREATE TABLE IF NOT EXISTS `antipode_kv` (`k` VARBINARY(512) NOT NULL PRIMARY KEY, `v`"
              + " LONGBLOB NOT NULL, `_ap` MEDIUMBLOB NULL INVISIBLE)",
          "CREATE TABLE IF NOT EXISTS `antipode_tombstone` (t VARBINARY(256) NOT NULL, k"
              + " VARBINARY(512) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL,"
              + " n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))",
          MySqlMigrations.promises().get(0));

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

  private final MySqlShim shim;
  private final Address address;

  Table(MySqlShim shim, Address address) {
    super(shim);
    this.shim = shim;
    this.address = address;
  }

  @Override
  protected List<String> ddl() {
    return DDL;
  }

  @Override
  protected Link open(Duration timeout) throws SQLException {
    try {
      return Link.open(address, timeout, shim.runs());
    } catch (RefusedException error) {
      throw new Refused(error);
    }
  }

  @Override
  protected Link connect(Duration timeout) throws SQLException {
    return Link.connect(address, timeout);
  }

  @Override
  protected Fault fault(SQLException error) {
    int number = error.getErrorCode();
    if (Errors.NO_TABLE.contains(number)) {
      return Fault.NO_TABLE;
    }
    if (Errors.NO_COLUMN.contains(number)) {
      return Fault.NO_COLUMN;
    }
    if (Errors.DENIED.contains(number)) {
      return Fault.DENIED;
    }
    return Errors.isRefusal(error) ? Fault.REFUSED : Fault.LOST;
  }

  private static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  protected void put(Link link, String key, byte[] value, String lineage) throws SQLException {
    int ignored = link.update(WRITE, bytes(key), value, lineage);
  }

  @Override
  protected void remove(Link link, String key, String lineage) throws SQLException {
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

  @Override
  protected @Nullable Row row(Link link, String key) throws SQLException {
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

  @Override
  protected @Nullable String buried(Link link, String key) throws SQLException {
    List<String> texts =
        link.query(
            BURIED,
            row -> new String(row.getBytes("l"), StandardCharsets.US_ASCII),
            bytes(NAME),
            bytes(key));
    return texts.isEmpty() ? null : texts.get(0);
  }

  @Override
  protected Lineage covering(Link link) throws SQLException {
    return shim.covering(link);
  }

  @Override
  protected Observation look(Link link, Floor floor, Duration most) {
    return shim.look(link, floor.writes(), floor.promises(), most);
  }

  @Override
  protected Lineage written(Link link, Lineage base) {
    List<WriteId> writes;
    String cause = "the server does not say its position";
    try {
      writes =
          Positions.minted(link.facts().flavor(), link.committed(), shim.runs(), shim.datastore());
    } catch (SQLException error) {
      link.close();
      cause = String.valueOf(error.getMessage());
      writes = List.of();
    } catch (NoGtidException error) {
      cause = String.valueOf(error.getMessage());
      writes = List.of();
    }
    if (writes.isEmpty()) {
      return shim.unsampled(base, cause);
    }
    Lineage written = base;
    for (WriteId write : writes) {
      Recording.recordWrite(write);
      written = written.append(write);
    }
    return written;
  }

  @Override
  protected boolean isRecorded(
      Connection connection, Promise promise, boolean isFulfilled, long untilS)
      throws SQLException {
    String table = Records.table(address.database());
    try (Statement statement = connection.createStatement()) {
      int changed = statement.executeUpdate(Records.recording(table, promise, isFulfilled, untilS));
      return changed != Records.OPPOSITE;
    }
  }

  @Override
  protected void sweep(Link link) throws SQLException {
    Records.sweep(link, Records.table(address.database()));
  }
}
