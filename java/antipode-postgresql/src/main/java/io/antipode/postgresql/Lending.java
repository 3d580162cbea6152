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

/** What is known of the drivers' connections of one pool, which lends them again and again. */
final class Lending implements InstrumentedPool.Lending {
  private final PostgreSqlShim shim;
  private final Map<Connection, Session> sessions =
      Collections.synchronizedMap(new WeakHashMap<>());

  Lending(PostgreSqlShim shim) {
    this.shim = shim;
  }

  @Override
  public BorrowedConnection lend(Connection connection, Places places) {
    try {
      Link link = Link.on(connection);
      Session session = sessions.computeIfAbsent(link.driver(), unused -> new Session());
      return new Lent(shim, link, session, places);
    } catch (SQLException error) {
      throw new ConfigurationException(
          "the pool of "
              + shim.datastore()
              + " has connections that are none of pgjdbc's: "
              + error.getMessage());
    }
  }
}
