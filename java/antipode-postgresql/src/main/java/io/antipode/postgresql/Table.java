package io.antipode.postgresql;

import io.antipode.Settings;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.postgresql.Link.State;
import io.antipode.runtime.Time;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Values, each with its lineage and a digest of the value, by which one that a plain client changed
 * is recognized. A deletion leaves its lineage in a table of tombstones.
 */
final class Table extends Table2<Link> {
  static final List<String> DDL =
      Stream.concat(
              Stream.of(
                  "CREATE TABLE IF NOT EXISTS antipode_kv (k bytea PRIMARY KEY, v bytea NOT NULL,"
                      + " l text, d bytea)",
                  "CREATE TABLE IF NOT EXISTS antipode_tombstone (t text NOT NULL, k bytea NOT"
                      + " NULL, l text NOT NULL, h bigint NOT NULL, PRIMARY KEY (t, k))",
                  "CREATE INDEX IF NOT EXISTS antipode_tombstone_h ON antipode_tombstone (h)"),
              Records.DDL.stream())
          .toList();

  private static final String NAME = "antipode_kv";
  private static final int DIGEST_BYTES = 9;

  private static final String WRITE =
      "INSERT INTO antipode_kv (k, v, l, d) VALUES (?, ?, ?, ?) ON CONFLICT (k) DO UPDATE"
          + " SET v = EXCLUDED.v, l = EXCLUDED.l, d = EXCLUDED.d";
  private static final String BURY =
      "INSERT INTO antipode_tombstone (t, k, l, h) VALUES (?, ?, ?, ?)"
          + " ON CONFLICT (t, k) DO UPDATE SET l = EXCLUDED.l, h = EXCLUDED.h";
  private static final String DELETE = "DELETE FROM antipode_kv WHERE k = ?";

  /** A deletion takes along some tombstones whose time is over; it waits for nobody's lock. */
  private static final String SWEEP =
      "DELETE FROM antipode_tombstone WHERE (t, k) IN (SELECT t, k FROM antipode_tombstone"
          + " WHERE h < ? ORDER BY h LIMIT 8 FOR UPDATE SKIP LOCKED)";

  private static final String READ = "SELECT v, l, d FROM antipode_kv WHERE k = ?";
  private static final String BURIED = "SELECT l FROM antipode_tombstone WHERE t = ? AND k = ?";

  private final PostgreSqlShim shim;
  private final Address address;

  Table(PostgreSqlShim shim, Address address) {
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
    return connect(timeout);
  }

  @Override
  protected Link connect(Duration timeout) throws SQLException {
    return Link.connect(address, timeout);
  }

  @Override
  protected Fault fault(SQLException error) {
    return Errors.fault(error);
  }

  private static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] digest(byte[] value) {
    try {
      return Arrays.copyOf(MessageDigest.getInstance("SHA-256").digest(value), DIGEST_BYTES);
    } catch (NoSuchAlgorithmException impossible) { // Each Java has it.
      throw new IllegalStateException(impossible);
    }
  }

  @Override
  protected void put(Link link, String key, byte[] value, String lineage) throws SQLException {
    int ignored = link.update(WRITE, bytes(key), value, lineage, digest(value));
  }

  @Override
  protected void remove(Link link, String key, String lineage) throws SQLException {
    long hour = Time.hour();
    long expires = hour + Settings.current().horizon().toHours() + 1;
    int ignored = link.update(BURY, NAME, bytes(key), lineage, expires);
    ignored = link.update(DELETE, bytes(key));
    ignored = link.update(SWEEP, hour);
  }

  @Override
  protected @Nullable Row row(Link link, String key) throws SQLException {
    List<Row> rows = link.query(READ, Table::row, bytes(key));
    return rows.isEmpty() ? null : rows.get(0);
  }

  private static Row row(ResultSet found) throws SQLException {
    byte[] value = found.getBytes("v");
    return new Row(value, found.getString("l"), Arrays.equals(digest(value), found.getBytes("d")));
  }

  @Override
  protected @Nullable String buried(Link link, String key) throws SQLException {
    List<String> texts = link.query(BURIED, row -> row.getString("l"), NAME, bytes(key));
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
    try {
      Map<String, String> row = link.ask(Look.SAMPLE).get(0);
      return base.merge(shim.sampled(link, row, true, Look.isFlushed(row)).get());
    } catch (SQLException error) {
      link.close();
      return base.merge(shim.unsampled(String.valueOf(error.getMessage())));
    }
  }

  @Override
  protected boolean isAutonomous(Connection connection) throws SQLException {
    // A BEGIN that was sent as text opens a transaction, of which JDBC knows nothing.
    return connection.getAutoCommit() && Link.on(connection).state() == State.IDLE;
  }

  @Override
  protected boolean isRecorded(
      Connection connection, Promise promise, boolean isFulfilled, long untilS)
      throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery(Records.recording(promise, isFulfilled, untilS))) {
      return found.next() && found.getBoolean("fulfilled") == isFulfilled;
    }
  }

  @Override
  protected void sweep(Link link) throws SQLException {
    link.execute(Records.sweeping());
  }
}
