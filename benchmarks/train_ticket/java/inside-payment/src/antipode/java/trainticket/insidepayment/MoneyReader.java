package trainticket.insidepayment;

import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import java.time.Duration;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.stereotype.Component;

/** Reads what came back. */
@Component
class MoneyReader {
  private final MongoTemplate database;
  private final boolean waits;
  private final Duration patience;

  MoneyReader(
      MongoTemplate database,
      @Value("${train-ticket.barrier-at-look-up:false}") boolean waits,
      @Value("${train-ticket.patience:5s}") Duration patience) {
    this.database = database;
    this.waits = waits;
    this.patience = patience;
  }

  // --8<-- [start:of]
  List<Money> of(String orderId) {
    if (waits) {
      Barriers.barrier(BarrierOptions.timeout(patience).withOnly("refunds"));
    }
    return database.find(query(where("orderId").is(orderId)), Money.class);
  }
  // --8<-- [end:of]
}
