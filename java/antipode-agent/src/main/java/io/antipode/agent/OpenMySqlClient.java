package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.mysql.cj.jdbc.MysqlDataSource;
import io.antipode.barrier.Shim;
import io.antipode.mysql.MySqlShim;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.mariadb.jdbc.MariaDbDataSource;

/** An instrumented pool of JDBC: plain statements, each in a transaction. */
final class OpenMySqlClient extends OpenClient {
  private final MySqlShim shim;
  private final DataSource pool;
  private final Jdbc jdbc;

  OpenMySqlClient(String store, JsonNode given) throws SQLException {
    shim = OpenMySql.builder(store, given).register();
    Set<String> tables = Set.copyOf(Values.texts(given.path("tables")));
    DataSource plain = pool(store, given);
    pool = tables.isEmpty() ? shim.instrument(plain) : shim.instrument(plain, tables);
    jdbc = new Jdbc(pool);
  }

  private static DataSource pool(String store, JsonNode given) throws SQLException {
    JsonNode server = Values.argument(given, "server");
    String url = url(store, server, given);
    String user = Values.text(server, "user");
    String password = Values.text(server, "password");
    if (store.equals("mariadb")) {
      MariaDbDataSource pool = new MariaDbDataSource(url);
      pool.setUser(user);
      pool.setPassword(password);
      return pool;
    }
    MysqlDataSource pool = new MysqlDataSource();
    pool.setUrl(url.contains("?") ? url : url + "?trackSessionState=true");
    pool.setUser(user);
    pool.setPassword(password);
    return pool;
  }

  private static String url(String store, JsonNode server, JsonNode given) {
    String options = given.path("url_options").asText("");
    String hosts = given.path("url_hosts").asText("");
    String mode = given.path("url_mode").asText("");
    return hosts.isEmpty()
        ? OpenMySql.url(store, server) + options
        : "jdbc:"
            + store
            + ":"
            + mode
            + "//"
            + hosts
            + "/"
            + Values.text(server, "database")
            + options;
  }

  @Override
  public Shim shim() {
    return shim;
  }

  /** Returns its connection for calls that are made one by one. */
  Jdbc jdbc() {
    return jdbc;
  }

  private interface Work<T> {
    T on(Connection connection) throws SQLException;
  }

  private <T> T inTransaction(Work<T> work) throws SQLException {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      T done = work.on(connection);
      connection.commit();
      return done;
    }
  }

  private int update(String sql, String... parameters) throws SQLException {
    return inTransaction(
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int nth = 0; nth < parameters.length; nth++) {
              statement.setBytes(nth + 1, OpenBytes.bytes(parameters[nth]));
            }
            return statement.executeUpdate();
          }
        });
  }

  @Override
  void put(String key, String value) throws SQLException {
    int unused = update("REPLACE INTO antipode_kv (k, v) VALUES (?, ?)", key, value);
  }

  @Override
  void remove(String key) throws SQLException {
    int unused = update("DELETE FROM antipode_kv WHERE k = ?", key);
  }

  @Override
  @Nullable String get(String key) throws SQLException {
    return inTransaction(
            connection -> {
              try (PreparedStatement statement =
                  connection.prepareStatement("SELECT v FROM antipode_kv WHERE k = ?")) {
                statement.setBytes(1, OpenBytes.bytes(key));
                try (ResultSet rows = statement.executeQuery()) {
                  return OpenBytes.found(rows.next() ? rows.getBytes(1) : null, null);
                }
              }
            })
        .value();
  }

  @Override
  public void close() {
    try {
      jdbc.close();
    } catch (SQLException error) {
      System.err.println("closing a connection failed: " + error.getMessage());
    }
    shim.close();
  }
}
