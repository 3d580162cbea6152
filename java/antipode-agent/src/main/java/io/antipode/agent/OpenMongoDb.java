package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.ReplaceOptions;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.mongodb.MongoShim;
import java.util.concurrent.CompletableFuture;
import org.bson.Document;
import org.bson.types.Binary;
import org.jspecify.annotations.Nullable;

/** A shim of MongoDB. */
final class OpenMongoDb extends OpenBytes {
  static final String COLLECTION = "posts";

  private final MongoShim shim;
  private final String url;
  private final String database;

  OpenMongoDb(JsonNode given) {
    url = url(given);
    database = database(given);
    if (!OpenShim.isReplica(given)) {
      makeCollection();
    }
    shim = builder(given).register();
  }

  private static String database(JsonNode given) {
    return Values.text(Values.argument(given, "server"), "database");
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
    return OpenShim.reading(
        MongoShim.builder(Values.text(given, "datastore"), url(given), database(given), COLLECTION),
        given);
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
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils) {
    return shim.write(key, value, lineage, fulfils);
  }

  @Override
  Lineage remove(String key, Lineage lineage) {
    return shim.delete(key, lineage);
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
    String text = value instanceof Binary binary ? text(binary.getData()) : (String) value;
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
