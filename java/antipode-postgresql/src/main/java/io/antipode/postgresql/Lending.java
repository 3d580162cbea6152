package io.antipode.postgresql;

import io.antipode.ConfigurationException;
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
  private final PostgreSqlShim shim;
  private final Map<Connection, Session> sessions =
      Collections.synchronizedMap(new WeakHashMap<>());

  /** Whose rows have stored lineages; null for none. */
  private final @Nullable StoredTables tables;

  Lending(PostgreSqlShim shim, @Nullable StoredTables tables) {
    this.shim = shim;
    this.tables = tables;
  }

  @Override
  public BorrowedConnection lend(Connection connection, Places places) {
    try {
      Link link = Link.on(connection);
      Session session = sessions.computeIfAbsent(link.driver(), unused -> new Session());
      RowLineages lineages = tables == null ? null : new RowLineages(shim, tables, link, session);
      return new Lent(shim, link, session, lineages, places);
    } catch (SQLException error) {
      throw new ConfigurationException(
          "the pool of "
              + shim.datastore()
              + " has connections that are none of pgjdbc's: "
              + error.getMessage());
    }
  }
}
