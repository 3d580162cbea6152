package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.Lineage;
import io.antipode.Promise;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.mysql.MySqlShim;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/** A shim of MySQL or MariaDB. */
final class OpenMySql implements OpenShim {
  private static final Executor READING = Executors.newCachedThreadPool();

  private final MySqlShim shim;
  private final String url;
  private final String user;
  private final String password;

  OpenMySql(String store, JsonNode given) throws SQLException {
    JsonNode server = Values.argument(given, "server");
    url =
        "jdbc:"
            + store
            + "://"
            + Values.text(server, "host")
            + ":"
            + Values.argument(server, "port").asInt()
            + "/"
            + Values.text(server, "database");
    user = Values.text(server, "user");
    password = Values.text(server, "password");
    boolean isReplica = given.path("reads_from").asText().equals("replica");
    if (!isReplica) {
      makeTables();
    }
    MySqlShim.Builder builder =
        MySqlShim.builder(Values.text(given, "datastore"), url).user(user, password);
    if (isReplica) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    if (given.hasNonNull("timeout_s")) {
      builder.timeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    shim = builder.register();
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
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils)
      throws SQLException {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    return shim.write(key, bytes, lineage == null ? Antipode.current() : lineage, fulfils);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) throws SQLException {
    return shim.delete(key, lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Found read(String key) throws Exception {
    return text(shim.read(key));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(OpenMySql::text);
  }

  private static Found text(MySqlShim.Found found) {
    byte @Nullable [] value = found.value();
    return new Found(
        value == null ? null : new String(value, StandardCharsets.UTF_8), found.lineage());
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url, user, password)) {
      connection.setAutoCommit(false);
      shim.fulfil(connection, fulfils);
      try (PreparedStatement write =
          connection.prepareStatement("REPLACE INTO antipode_kv (k, v) VALUES (?, ?)")) {
        write.setBytes(1, key.getBytes(StandardCharsets.UTF_8));
        write.setBytes(2, value.getBytes(StandardCharsets.UTF_8));
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
