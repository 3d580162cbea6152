package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.model.ReplaceOptions;
import io.antipode.barrier.Shim;
import io.antipode.mongodb.MongoShim;
import org.bson.Document;
import org.bson.types.Binary;
import org.jspecify.annotations.Nullable;

/** An instrumented client of MongoDB: plain calls that replace, delete and find one document. */
final class OpenMongoDbClient extends OpenClient {
  private final MongoShim shim;
  private final MongoClient client;
  private final MongoCollection<Document> posts;
  private final MongoCalls calls;

  /** Whether it reads documents one by one. */
  private final boolean isStreaming;

  OpenMongoDbClient(JsonNode given) {
    shim = OpenMongoDb.builder(given).register();
    ConnectionString url = new ConnectionString(OpenMongoDb.url(given));
    client = shim.instrument(MongoClientSettings.builder().applyConnectionString(url).build());
    String database = Values.text(Values.argument(given, "server"), "database");
    posts = client.getDatabase(database).getCollection(OpenMongoDb.COLLECTION);
    calls = new MongoCalls(client, database);
    isStreaming = given.path("streaming").asBoolean();
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
  void put(String key, String value) {
    Document document = new Document("value", OpenBytes.bytes(value));
    Object unused =
        posts.replaceOne(new Document("_id", key), document, new ReplaceOptions().upsert(true));
  }

  @Override
  void remove(String key) {
    Object unused = posts.deleteOne(new Document("_id", key));
  }

  @Override
  @Nullable String get(String key) {
    Document wanted = new Document("_id", key);
    Document found = isStreaming ? streamed(wanted) : posts.find(wanted).first();
    return OpenBytes.text(found == null ? null : found.get("value", Binary.class).getData());
  }

  private @Nullable Document streamed(Document wanted) {
    try (MongoCursor<Document> found = posts.find(wanted).batchSize(1).iterator()) {
      return found.hasNext() ? found.next() : null;
    }
  }

  @Override
  public void close() {
    client.close();
    shim.close();
  }
}
