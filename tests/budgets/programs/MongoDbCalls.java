import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.internal.build.MongoDriverVersion;
import io.antipode.mongodb.MongoShim;
import org.bson.Document;

/** The synchronous driver of MongoDB. */
final class MongoDbCalls {
  private MongoDbCalls() {}

  static void count(String url) throws Exception {
    String release = MongoDriverVersion.VERSION;
    MongoClientSettings settings =
        MongoClientSettings.builder().applyConnectionString(new ConnectionString(url)).build();
    try (MongoShim shim = MongoShim.builder("posts", url, "app", "posts").register();
        MongoClient plainClient = MongoClients.create(settings);
        MongoClient client = shim.instrument(settings)) {
      MongoCollection<Document> plain = plainClient.getDatabase("app").getCollection("budget");
      MongoCollection<Document> ours = client.getDatabase("app").getCollection("budget");
      Counting.compare(
          "MongoDB: insert", "mongodb", release, () -> insert(ours), () -> insert(plain));
      Counting.compare("MongoDB: find", "mongodb", release, () -> find(ours), () -> find(plain));
    }
  }

  private static void insert(MongoCollection<Document> into) {
    into.insertOne(new Document("n", 1));
  }

  private static void find(MongoCollection<Document> in) {
    in.find().first();
  }
}
