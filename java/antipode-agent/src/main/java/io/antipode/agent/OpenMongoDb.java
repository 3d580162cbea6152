package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.ReplaceOptions;
import io.antipode.Antipode;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.mongodb.MongoShim;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.bson.Document;
import org.bson.types.Binary;
import org.jspecify.annotations.Nullable;

/** A shim of MongoDB. */
final class OpenMongoDb implements OpenShim {
  static final String COLLECTION = "posts";
  private static final Executor READING = Executors.newCachedThreadPool();

  private final MongoShim shim;
  private final String url;
  private final String database;

  OpenMongoDb(JsonNode given) {
    url = url(given);
    database = database(given);
    if (!isReplica(given)) {
      makeCollection();
    }
    shim = builder(given).register();
  }

  private static String database(JsonNode given) {
    return Values.text(Values.argument(given, "server"), "database");
  }

  private static boolean isReplica(JsonNode given) {
    return given.path("reads_from").asText().equals("replica");
  }

  static String url(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    String address = Values.text(server, "host") + ":" + Values.argument(server, "port").asInt();
    String more =
        given.hasNonNull("timeout_s")
            ? "&socketTimeoutMS=" + Math.round(given.get("timeout_s").asDouble() * 1_000)
            : "";
    String options = given.path("url_options").asText("directConnection=true");
    return "mongodb://" + address + "/?serverMonitoringMode=poll&" + options + more;
  }

  static MongoShim.Builder builder(JsonNode given) {
    MongoShim.Builder builder =
        MongoShim.builder(Values.text(given, "datastore"), url(given), database(given), COLLECTION);
    if (isReplica(given)) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    return builder;
  }

  private void makeCollection() {
    try (MongoClient client = MongoClients.create(url)) {
      MongoShim.ddl().forEach(command -> client.getDatabase(database).runCommand(command));
    }
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    return shim.write(key, bytes(value), lineage == null ? Antipode.current() : lineage, fulfils);
  }

  private static byte[] bytes(String value) {
    return value.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) {
    return shim.delete(key, lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Found read(String key) {
    return text(shim.read(key));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, READING).thenApply(OpenMongoDb::text);
  }

  private static Found text(MongoShim.Found found) {
    Object value = found.value();
    String text =
        value instanceof Binary binary
            ? new String(binary.getData(), StandardCharsets.UTF_8)
            : (String) value;
    return new Found(text, found.lineage());
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    try (MongoClient client = MongoClients.create(url);
        ClientSession session = client.startSession()) {
      MongoDatabase where = client.getDatabase(database);
      session.startTransaction();
      shim.fulfil(where, session, fulfils);
      Object unused =
          where
              .getCollection(COLLECTION)
              .replaceOne(
                  session,
                  new Document("_id", key),
                  new Document("value", bytes(value)),
                  new ReplaceOptions().upsert(true));
      session.abortTransaction();
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
