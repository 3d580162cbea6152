package trainticket.insidepayment;

import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import java.util.List;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.stereotype.Component;

/** Reads what came back. */
@Component
class MoneyReader {
  private final MongoTemplate database;

  MoneyReader(MongoTemplate database) {
    this.database = database;
  }

  List<Money> of(String orderId) {
    return database.find(query(where("orderId").is(orderId)), Money.class);
  }
}
