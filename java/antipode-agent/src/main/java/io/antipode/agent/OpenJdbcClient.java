package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.barrier.Shim;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** An instrumented pool of HikariCP: plain statements, each in a transaction. */
final class OpenJdbcClient extends OpenClient {
  private final Shim shim;
  private final HikariDataSource plain;
  private final DataSource pool;

  /** Sets the value of a key, whether there is one or not. */
  private final String upsert;

  private final Jdbc jdbc;

  private OpenJdbcClient(Shim shim, HikariDataSource plain, DataSource pool, String upsert) {
    this.shim = shim;
    this.plain = plain;
    this.pool = pool;
    this.upsert = upsert;
    this.jdbc = new Jdbc(pool);
  }

  /** Opens one of MySQL or MariaDB. */
  static OpenJdbcClient ofMySql(String store, JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    MySqlShim shim =
        OpenSql.described(
                MySqlShim.builder(Values.text(given, "datastore"), OpenSql.url(store, server)),
                given)
            .register();
    Set<String> tables = Set.copyOf(Values.texts(given.path("tables")));
    String url = url(store, server, given);
    boolean isPlain = store.equals("mariadb") || url.contains("?");
    HikariDataSource plain = pool(isPlain ? url : url + "?trackSessionState=true", given);
    return new OpenJdbcClient(
        shim,
        plain,
        tables.isEmpty() ? shim.instrument(plain) : shim.instrument(plain, tables),
        OpenSql.upsert(store));
  }

  /** Opens one of PostgreSQL. */
  static OpenJdbcClient ofPostgreSql(JsonNode given) {
    String url = OpenSql.url("postgresql", Values.argument(given, "server"));
    PostgreSqlShim shim =
        OpenSql.described(PostgreSqlShim.builder(Values.text(given, "datastore"), url), given)
            .register();
    HikariDataSource plain = pool(url + given.path("url_options").asText(""), given);
    Set<String> tables = Set.copyOf(Values.texts(given.path("tables")));
    return new OpenJdbcClient(
        shim,
        plain,
        tables.isEmpty() ? shim.instrument(plain) : shim.instrument(plain, tables),
        OpenSql.upsert("postgresql"));
  }

  private static HikariDataSource pool(String url, JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(Values.text(server, "user"));
    config.setPassword(Values.text(server, "password"));
    config.setInitializationFailTimeout(-1); // What it cannot reach the test says.
    config.setMinimumIdle(0);
    return new HikariDataSource(config);
  }

  private static String url(String store, JsonNode server, JsonNode given) {
    String options = given.path("url_options").asText("");
    String hosts = given.path("url_hosts").asText("");
    String mode = given.path("url_mode").asText("");
    return hosts.isEmpty()
        ? OpenSql.url(store, server) + options
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
    int unused = update(upsert, key, value);
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
    plain.close();
    shim.close();
  }
}
