package io.antipode.spring;

import io.antipode.lab.Lab;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/** JPA over PostgreSQL, with snapshots of transactions as the other stores have them. */
class BootJpaPostgreSqlTest extends BootJpaTest {
  private static final String REPEATABLE =
      "?options=-c%20default_transaction_isolation%3Drepeatable%5C%20read";

  BootJpaPostgreSqlTest() {
    super("postgresql");
  }

  @Override
  String jdbc(String url) {
    return super.jdbc(url) + REPEATABLE;
  }

  /** By its address, too. */
  @Override
  List<String> replicaSettings(String rule) {
    String replica = "postgresql://127.0.0.1:" + Lab.port(lab().otherUrl());
    return List.of("--antipode.datastores=" + rule + ",posts=" + replica + "?reads_from=replica");
  }

  /** Replay waits for a reader of a table that the primary locked. */
  @Override
  AutoCloseable held() throws SQLException {
    try (Connection primary = connect(lab().url());
        Statement writing = primary.createStatement()) {
      boolean unused = writing.execute("CREATE TABLE IF NOT EXISTS boot_held ()");
      Connection standby = connect(lab().otherUrl());
      try (Statement reading = standby.createStatement()) {
        while (!isThere(reading)) {
          Thread.onSpinWait();
        }
        standby.setAutoCommit(false);
        unused = reading.execute("SELECT * FROM boot_held");
      }
      unused = writing.execute("BEGIN; LOCK TABLE boot_held IN ACCESS EXCLUSIVE MODE; COMMIT");
      return standby;
    }
  }

  private static boolean isThere(Statement reading) throws SQLException {
    try (ResultSet found = reading.executeQuery("SELECT to_regclass('boot_held') IS NOT NULL")) {
      return found.next() && found.getBoolean(1);
    }
  }

  private Connection connect(String url) throws SQLException {
    return DriverManager.getConnection(jdbc(url), "app", "app");
  }
}
