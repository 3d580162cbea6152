package trainticket.insidepayment;

import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import io.antipode.lineage.Promise;
import io.antipode.barrier.Shims;
import io.antipode.mongodb.MongoShim;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.stereotype.Component;

/** Where refunds are. */
@Component
class Refunds {
  private final MongoTemplate database;
  private final MongoClient client;

  Refunds(MongoTemplate database, MongoClient client) {
    this.database = database;
    this.client = client;
  }

  // --8<-- [start:make]
  /** Makes a refund, and so fulfils its promise, unless it was made before. */
  void make(Money refund, Promise promise) {
    MongoShim shim = (MongoShim) Shims.of("refunds").get(0);
    try (ClientSession session = client.startSession()) {
      session.withTransaction(
          () -> {
            shim.fulfil(database.getDb(), session, promise);
            return database.withSession(session).insert(refund);
          });
    } catch (DuplicateKeyException again) {
      // The request was delivered before.
    }
  }
  // --8<-- [end:make]
}
