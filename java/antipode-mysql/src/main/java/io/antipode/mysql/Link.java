package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.UnreachableException;
import io.antipode.jdbc.OwnConnection;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/**
 * A connection of the shim's own, used by one thread at a time. Each statement commits on its own.
 */
final class Link extends OwnConnection {
  /** Nobody's uncommitted record of a promise may be seen, and no gap be locked. */
  private static final String COMMITTED = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

  private static final String VARIABLES =
      "SHOW GLOBAL VARIABLES WHERE Variable_name REGEXP"
          + " '^replicate_(wild_)?(do|ignore)_(db|table)$' OR Variable_name IN ('version',"
          + " 'server_uuid', 'server_id', 'server_uid', 'gtid_mode', 'log_bin',"
          + " 'log_slave_updates', 'gtid_executed', 'gtid_strict_mode',"
          + " 'group_replication_group_name', 'group_replication_gtid_assignment_block_size')";

  /** Lets MySQL name the commits of a session in its replies. */
  static final String TRACK = "SET SESSION session_track_gtids = OWN_GTID";

  /** Asks for nothing, so that the status word of its reply is that of the session. */
  static final String NOTHING = "DO 0";

  /**
   * When the server's process started, both terms of the statement's clock, and by which number the
   * server knows the connection. That is never asked for alone: ProxySQL answers it itself.
   */
  private static final String STARTED =
      "SELECT CAST(UNIX_TIMESTAMP() - VARIABLE_VALUE AS SIGNED) AS started, CONNECTION_ID() AS session FROM ";

  private final List<String> reported = new ArrayList<>();
  private @Nullable Object listener;
  private @Nullable Facts facts;
  private String lastGtid = "";

  private Link(Connection connection) {
    super(connection);
  }

  /**
   * Connects within a time, after as much of which each statement is given up.
   *
   * @throws SQLException as the driver does
   */
  static Link connect(Address address, Duration timeout) throws SQLException {
    Properties properties = new Properties();
    if (address.user() != null) {
      properties.setProperty("user", address.user());
    }
    if (address.password() != null) {
      properties.setProperty("password", address.password());
    }
    String most = Long.toString(Math.max(timeout.toMillis(), 1));
    properties.setProperty("connectTimeout", most);
    properties.setProperty("socketTimeout", most);
    if (address.flavor() == Flavor.MYSQL) {
      properties.setProperty("trackSessionState", "true");
    }
    return new Link(DriverManager.getConnection(address.url(), properties));
  }

  /**
   * Connects, and finds out what the server is.
   *
   * @throws SQLException as the driver does
   * @throws RefusedException if what the server says of itself cannot be read
   * @throws ConfigurationException if the driver cannot report what this server's writes are named
   *     by
   */
  static Link open(Address address, Duration timeout, Runs runs)
      throws SQLException, RefusedException {
    Link link = connect(address, timeout);
    try {
      link.detect(address, runs);
      return link;
    } catch (SQLException | RefusedException | RuntimeException error) {
      link.close();
      throw error;
    }
  }

  /**
   * Returns a link that asks on a connection of the application's, and sets up nothing there. It is
   * not closed.
   *
   * @param facts what is known of its server; null for nothing
   */
  static Link on(Connection connection, @Nullable Facts facts) {
    Link link = new Link(connection);
    link.facts = facts;
    return link;
  }

  private void detect(Address address, Runs runs) throws SQLException, RefusedException {
    Facts found = asked();
    if (found.flavor() == Flavor.MYSQL && address.flavor() != Flavor.MYSQL) {
      throw new ConfigurationException(
          address
              + " is a MySQL server: only Connector/J (jdbc:mysql:) reports what its commits are");
    }
    runs.learn(found.executed(), found.groupBlock());
    execute(COMMITTED);
    if (found.flavor() == Flavor.MYSQL) {
      listener = Wire.of(connection()).listen(reported::add);
      execute(TRACK);
    }
  }

  /**
   * Asks what the server is.
   *
   * @throws RefusedException if its answer cannot be read
   */
  Facts asked() throws SQLException, RefusedException {
    Map<String, String> variables = new LinkedHashMap<>();
    for (Map<String, String> row : rows(VARIABLES)) {
      variables.put(row.getOrDefault("Variable_name", ""), row.getOrDefault("Value", ""));
    }
    Flavor flavor = Flavor.of(variables.getOrDefault("version", ""));
    String status =
        flavor == Flavor.MYSQL
            ? "performance_schema.global_status"
            : "information_schema.GLOBAL_STATUS";
    Map<String, String> started = rows(STARTED + status + " WHERE VARIABLE_NAME = 'UPTIME'").get(0);
    Facts found =
        Facts.of(
            variables,
            started.getOrDefault("started", ""),
            Reach.proxied(Wire.of(connection()).accepted(), started.getOrDefault("session", "")));
    facts = found;
    return found;
  }

  /** Returns what is known of the server of a link that was opened. */
  Facts facts() {
    if (facts == null) {
      throw new IllegalStateException("nobody asked what the server is");
    }
    return facts;
  }

  /** A question of the library's own. */
  interface Question<T, E extends Exception> {
    T ask() throws SQLException, E;
  }

  /**
   * Asks on a connection of the application's, which may be in a transaction. One that the question
   * begins is ended: the application knows nothing of it.
   */
  <T, E extends Exception> T aside(Session session, Question<T, E> question)
      throws SQLException, E {
    try {
      return question.ask();
    } finally {
      Transaction transaction = session.transaction();
      if (!transaction.endsByItself()) {
        session.mayHaveRead();
      } else if (!transaction.isAutonomous()) {
        execute("ROLLBACK");
      }
    }
  }

  /**
   * Returns the rows of a question of the library's own.
   *
   * @throws RefusedException if the server answers with an error that stays
   * @throws UnreachableException if there is no answer now
   */
  List<Map<String, String>> ask(String sql) throws RefusedException {
    try {
      return rows(sql);
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }

  /** Returns the GTIDs of what this session committed since it was asked last; empty for none. */
  String committed() throws SQLException {
    if (listener != null) {
      String taken = String.join(",", reported);
      reported.clear();
      return taken;
    }
    // It stays what it was where nothing was logged since.
    String gtid = rows("SELECT @@last_gtid AS gtid").get(0).getOrDefault("gtid", "");
    String found = gtid.equals(lastGtid) ? "" : gtid;
    lastGtid = gtid;
    return found;
  }
}
