package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.jdbc.SqlShim;
import io.antipode.jdbc.SqlShimBuilder;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.mysql.MySqlShim;
import io.antipode.postgresql.PostgreSqlShim;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim of an SQL database. */
final class OpenSql extends OpenBytes {
  private final SqlShim shim;
  private final String url;
  private final String user;
  private final String password;
  private final String upsert;

  OpenSql(String store, JsonNode given) throws SQLException {
    JsonNode server = Values.argument(given, "server");
    String datastore = Values.text(given, "datastore");
    boolean isPostgreSql = store.equals("postgresql");
    url = url(store, server);
    user = Values.text(server, "user");
    password = Values.text(server, "password");
    upsert = upsert(store);
    if (!OpenShim.isReplica(given)) {
      makeTables(isPostgreSql ? PostgreSqlShim.ddl() : MySqlShim.ddl());
    }
    shim =
        isPostgreSql
            ? described(PostgreSqlShim.builder(datastore, url), given).register()
            : described(MySqlShim.builder(datastore, url), given).register();
  }

  static String url(String store, JsonNode server) {
    return "jdbc:"
        + store
        + "://"
        + Values.text(server, "host")
        + ":"
        + Values.argument(server, "port").asInt()
        + "/"
        + Values.text(server, "database");
  }

  /** Returns what sets the value of a key, whether there is one or not. */
  static String upsert(String store) {
    return store.equals("postgresql")
        ? "INSERT INTO antipode_kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
        : "REPLACE INTO antipode_kv (k, v) VALUES (?, ?)";
  }

  /** Returns a builder, with what is given of the shim. */
  static <B extends SqlShimBuilder<B, S>, S extends SqlShim> B described(
      B builder, JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    builder.user(Values.text(server, "user"), Values.text(server, "password"));
    OpenShim.reading(builder, given);
    if (given.path("one_server").asBoolean()) {
      builder.oneServer();
    }
    if (given.hasNonNull("timeout_s")) {
      builder.timeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    return builder.readonlyFunctions(Set.copyOf(Values.texts(given.path("readonly_functions"))));
  }

  private void makeTables(List<String> ddl) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url, user, password);
        Statement statement = connection.createStatement()) {
      for (String sql : ddl) {
        boolean ignored = statement.execute(sql);
      }
    }
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws SQLException {
    return shim.write(key, value, lineage, fulfils);
  }

  @Override
  Lineage remove(String key, Lineage lineage) throws SQLException {
    return shim.delete(key, lineage);
  }

  @Override
  public Found read(String key) throws Exception {
    SqlShim.Found found = shim.read(key);
    return found(found.value(), found.lineage());
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(each -> found(each.value(), each.lineage()));
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url, user, password)) {
      connection.setAutoCommit(false);
      shim.fulfil(connection, fulfils);
      try (PreparedStatement write = connection.prepareStatement(upsert)) {
        write.setBytes(1, bytes(key));
        write.setBytes(2, bytes(value));
        int ignored = write.executeUpdate();
      }
      connection.rollback();
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
