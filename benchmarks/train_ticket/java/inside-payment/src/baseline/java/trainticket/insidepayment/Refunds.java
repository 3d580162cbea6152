package trainticket.insidepayment;

import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.stereotype.Component;

/** Where refunds are. */
@Component
class Refunds {
  private final MongoTemplate database;

  Refunds(MongoTemplate database) {
    this.database = database;
  }

  /** Makes a refund, unless it was made before. */
  void make(Money refund) {
    try {
      database.insert(refund);
    } catch (DuplicateKeyException again) {
      // The request was delivered before.
    }
  }
}
