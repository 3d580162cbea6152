package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.mongodb.ClientSessionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.StreamSupport;
import org.bson.BsonValue;
import org.bson.Document;
import org.jspecify.annotations.Nullable;

/** An instrumented client of MongoDB, on which calls of the driver are made one by one. */
final class MongoCalls {
  private static final Document ALL = new Document();
  private static final Document CHANGE = Document.parse("{$inc: {n: 1}}");

  private final MongoClient client;
  private final String database;
  private @Nullable ClientSession session;
  private @Nullable MongoCursor<Document> cursor;

  MongoCalls(MongoClient client, String database) {
    this.client = client;
    this.database = database;
  }

  /**
   * Makes one call; returns what it came to.
   *
   * @param concern {@code w} of its write concern; empty for the client's
   * @param argument a document: what to insert, what to ask for, or a command
   */
  synchronized JsonNode call(String call, String concern, String argument) {
    Document given = argument.isEmpty() ? ALL : Document.parse(argument);
    MongoDatabase where = client.getDatabase(database);
    if (!concern.isEmpty()) {
      where = where.withWriteConcern(concern(concern));
    }
    ClientSession open = session;
    Object result =
        open == null
            ? alone(call, where, where.getCollection("notes"), given)
            : inSession(call, open, where.getCollection("notes"), given);
    return json(result);
  }

  private static WriteConcern concern(String w) {
    return w.equals("majority") ? WriteConcern.MAJORITY : new WriteConcern(Integer.parseInt(w));
  }

  private static JsonNode json(@Nullable Object result) {
    JsonNodeFactory json = JsonNodeFactory.instance;
    if (result instanceof Iterable<?> documents) {
      ArrayNode all = json.arrayNode();
      documents.forEach(each -> all.add(String.valueOf(each)));
      return all;
    }
    return result instanceof Number number
        ? json.numberNode(number.longValue())
        : json.textNode(String.valueOf(result));
  }

  private @Nullable Object alone(
      String call, MongoDatabase where, MongoCollection<Document> notes, Document given) {
    return switch (call) {
      case "begin" -> begin();
      case "begin_snapshot" -> beginSnapshot();
      case "watch" -> watch(notes);
      case "with_transaction" -> inTransaction(notes, given);
      case "count" -> notes.countDocuments(given);
      case "estimate" -> notes.estimatedDocumentCount();
      case "distinct" -> notes.distinct("_id", given, BsonValue.class).into(new ArrayList<>());
      case "aggregate" -> notes.aggregate(List.of(new Document("$match", given))).into(list());
      case "find" -> notes.find(given).into(list());
      case "stream" -> StreamSupport.stream(notes.find(given).spliterator(), false).toList();
      case "open_cursor" -> openCursor(notes, given);
      case "read_on" -> readOn();
      case "command" -> where.runCommand(given);
      default -> written(call, where, notes, given);
    };
  }

  private static List<Document> list() {
    return new ArrayList<>();
  }

  private static @Nullable Object written(
      String call, MongoDatabase where, MongoCollection<Document> notes, Document given) {
    return switch (call) {
      case "insert" -> notes.insertOne(new Document(given));
      case "insert_many" -> notes.insertMany(List.of(new Document(given), new Document("x", 2)));
      case "update" -> notes.updateOne(given, CHANGE);
      case "upsert" -> notes.updateOne(given, CHANGE, new UpdateOptions().upsert(true));
      case "update_many" -> notes.updateMany(given, CHANGE);
      case "replace" ->
          notes.replaceOne(given, new Document("n", 1), new ReplaceOptions().upsert(true));
      case "delete" -> notes.deleteOne(given);
      case "delete_many" -> notes.deleteMany(given);
      case "bulk" ->
          notes.bulkWrite(
              List.of(
                  new InsertOneModel<>(new Document(given)),
                  new UpdateOneModel<>(given, CHANGE),
                  new DeleteOneModel<>(given)));
      case "find_and_update" -> notes.findOneAndUpdate(given, CHANGE);
      case "find_and_replace" -> notes.findOneAndReplace(given, new Document("n", 2));
      case "find_and_delete" -> notes.findOneAndDelete(given);
      case "out" -> notes.aggregate(List.of(new Document("$out", "other"))).into(list());
      case "merge" -> {
        notes.aggregate(List.of(new Document("$merge", "other"))).toCollection();
        yield 1;
      }
      case "index" -> notes.createIndex(given, new IndexOptions().name("made"));
      case "drop" -> {
        where.getCollection("other").drop();
        yield 1;
      }
      default -> throw AgentException.senseless("no call " + call);
    };
  }

  private Object begin() {
    ClientSession begun = client.startSession();
    begun.startTransaction();
    session = begun;
    return 1;
  }

  private Object beginSnapshot() {
    session = client.startSession(ClientSessionOptions.builder().snapshot(true).build());
    return 1;
  }

  /** Returns what a change stream shows of a change that comes while it is open. */
  private static Object watch(MongoCollection<Document> notes) {
    try (MongoCursor<ChangeStreamDocument<Document>> changes = notes.watch().iterator()) {
      Object unused = notes.insertOne(new Document("watched", 1));
      return changes.next();
    }
  }

  private Object inTransaction(MongoCollection<Document> notes, Document given) {
    try (ClientSession own = client.startSession()) {
      return own.withTransaction(() -> notes.insertOne(own, new Document(given)));
    }
  }

  private @Nullable Object inSession(
      String call, ClientSession open, MongoCollection<Document> notes, Document given) {
    return switch (call) {
      case "insert" -> notes.insertOne(open, new Document(given));
      case "find_and_update" -> notes.findOneAndUpdate(open, given, CHANGE);
      case "find" -> notes.find(open, given).into(list());
      case "commit" -> {
        open.commitTransaction();
        yield 1;
      }
      case "end" -> {
        open.close(); // Which aborts what was not committed.
        session = null;
        yield 1;
      }
      default -> throw AgentException.senseless("no call " + call + " in a session");
    };
  }

  private Object openCursor(MongoCollection<Document> notes, Document given) {
    cursor = notes.find(given).batchSize(2).iterator();
    return cursor.next();
  }

  private Object readOn() {
    List<Document> left = list();
    try (MongoCursor<Document> open = Objects.requireNonNull(cursor)) {
      open.forEachRemaining(left::add);
    }
    return left;
  }
}
