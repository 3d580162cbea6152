package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.ReplaceOptions;
import io.antipode.Lineage;
import io.antipode.Promise;
import io.antipode.barrier.Shim;
import io.antipode.mongodb.MongoShim;
import io.opentelemetry.context.Context;
import java.util.concurrent.CompletableFuture;
import org.bson.Document;
import org.bson.types.Binary;
import org.jspecify.annotations.Nullable;

/** An instrumented client of MongoDB: plain calls that replace, delete and find one document. */
final class OpenMongoDbClient implements OpenShim {
  private final MongoShim shim;
  private final MongoClient client;
  private final MongoCollection<Document> posts;
  private final MongoCalls calls;

  OpenMongoDbClient(JsonNode given) {
    shim = OpenMongoDb.builder(given).register();
    ConnectionString url = new ConnectionString(OpenMongoDb.url(given));
    client = shim.instrument(MongoClientSettings.builder().applyConnectionString(url).build());
    String database = Values.text(Values.argument(given, "server"), "database");
    posts = client.getDatabase(database).getCollection(OpenMongoDb.COLLECTION);
    calls = new MongoCalls(client, database);
  }

  @Override
  public Shim shim() {
    return shim;
  }

  /** Returns the same client for calls that are made one by one. */
  MongoCalls calls() {
    return calls;
  }

  @Override
  public @Nullable Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    Document document = new Document("value", OpenBytes.bytes(value));
    Object unused =
        posts.replaceOne(new Document("_id", key), document, new ReplaceOptions().upsert(true));
    return null;
  }

  @Override
  public @Nullable Lineage delete(String key, @Nullable Lineage lineage) {
    Object unused = posts.deleteOne(new Document("_id", key));
    return null;
  }

  @Override
  public Found read(String key) {
    Document found = posts.find(new Document("_id", key)).first();
    return OpenBytes.found(found == null ? null : found.get("value", Binary.class).getData(), null);
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return CompletableFuture.supplyAsync(() -> read(key), Context.taskWrapping(OpenBytes.READING));
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }

  @Override
  public void close() {
    client.close();
    shim.close();
  }
}
