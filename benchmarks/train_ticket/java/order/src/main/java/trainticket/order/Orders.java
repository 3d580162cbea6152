package trainticket.order;

import java.util.Optional;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Repository;
import org.springframework.transaction.annotation.Transactional;

/** Where orders are. */
@Repository
class Orders {
  private final JdbcClient database;
  private final String table;

  Orders(JdbcClient database, @Value("${train-ticket.table}") String table) {
    this.database = database;
    this.table = table;
  }

  @Transactional(readOnly = true)
  public Optional<Order> find(String id) {
    return database
        .sql("SELECT id, user_id, status, cents FROM " + table + " WHERE id = ?")
        .param(id)
        .query(Order.class)
        .optional();
  }

  /** Cancels an order that is not cancelled yet, and returns whether it was one. */
  @Transactional
  public boolean cancel(String id) {
    return database
            .sql("UPDATE " + table + " SET status = ? WHERE id = ? AND status IN (0, 1, 3)")
            .params(Order.CANCELLED, id)
            .update()
        == 1;
  }
}
