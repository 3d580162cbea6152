package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.mysql.MySqlShim;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim of MySQL or MariaDB. */
final class OpenMySql extends OpenBytes {
  private final MySqlShim shim;
  private final String url;
  private final String user;
  private final String password;

  OpenMySql(String store, JsonNode given) throws SQLException {
    JsonNode server = Values.argument(given, "server");
    url = url(store, server);
    user = Values.text(server, "user");
    password = Values.text(server, "password");
    if (!isReplica(given)) {
      makeTables();
    }
    shim = builder(store, given).register();
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

  private static boolean isReplica(JsonNode given) {
    return given.path("reads_from").asText().equals("replica");
  }

  static MySqlShim.Builder builder(String store, JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    MySqlShim.Builder builder =
        MySqlShim.builder(Values.text(given, "datastore"), url(store, server))
            .user(Values.text(server, "user"), Values.text(server, "password"));
    if (isReplica(given)) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    if (given.path("one_server").asBoolean()) {
      builder.oneServer();
    }
    builder.readonlyFunctions(Set.copyOf(Values.texts(given.path("readonly_functions"))));
    if (given.hasNonNull("timeout_s")) {
      builder.timeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    return builder;
  }

  private void makeTables() throws SQLException {
    try (Connection connection = DriverManager.getConnection(url, user, password);
        Statement statement = connection.createStatement()) {
      for (String sql : MySqlShim.ddl()) {
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
    MySqlShim.Found found = shim.read(key);
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
      try (PreparedStatement write =
          connection.prepareStatement("REPLACE INTO antipode_kv (k, v) VALUES (?, ?)")) {
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
