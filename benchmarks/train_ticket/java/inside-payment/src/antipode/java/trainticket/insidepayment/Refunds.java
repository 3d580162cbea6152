package trainticket.insidepayment;

import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import io.antipode.lineage.Promise;
import io.antipode.mongodb.MongoShim;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.stereotype.Component;

/** Where refunds are. */
@Component
class Refunds {
  private final MongoTemplate database;
  private final MongoClient client;
  private final MongoShim promises;

  Refunds(MongoTemplate database, MongoClient client, MongoShim promises) {
    this.database = database;
    this.client = client;
    this.promises = promises;
  }

  // --8<-- [start:make]
  /** Makes a refund, unless it was made before, and fulfils a promise of it. */
  void make(Money refund, Promise promise) {
    try (ClientSession session = client.startSession()) {
      session.withTransaction(
          () -> {
            promises.fulfil(database.getDb(), session, promise);
            MongoTemplate here = database.withSession(session);
            // A user who asked again was promised it again.
            Money made = here.findById(refund.orderId(), Money.class);
            return made == null ? here.insert(refund) : made;
          });
    }
  }
  // --8<-- [end:make]
}
