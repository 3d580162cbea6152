package io.antipode.mysql;

import io.antipode.barrier.Places;
import io.antipode.jdbc.BorrowedConnection;
import io.antipode.jdbc.InstrumentedPool;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/** What is known of the drivers' connections of one pool, which lends them again and again. */
final class Lending implements InstrumentedPool.Lending {
  private final MySqlShim shim;

  /** The tables with whose rows lineages are stored; null for none. */
  private final @Nullable Migrated migrated;

  private final Map<Connection, Tap> taps = Collections.synchronizedMap(new WeakHashMap<>());

  Lending(MySqlShim shim, @Nullable Migrated migrated) {
    this.shim = shim;
    this.migrated = migrated;
  }

  @Override
  public BorrowedConnection lend(Connection connection, Places places) {
    return new Lent(shim, wire(connection), this::tap, migrated, places);
  }

  private static Wire wire(Connection connection) {
    try {
      return Wire.of(connection);
    } catch (SQLException | RuntimeException error) {
      return new Wire.Unknown(connection);
    }
  }

  private Tap tap(Wire wire) {
    return taps.computeIfAbsent(wire.connection(), unused -> new Tap(shim));
  }
}
