package trainticket.payment;

import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** What was paid for orders. */
@RestController
class Payments {
  private final JdbcClient database;

  Payments(JdbcClient database) {
    this.database = database;
  }

  /**
   * A payment.
   *
   * @param cents how much
   */
  record Payment(String orderId, String userId, long cents) {}

  @GetMapping("/api/v1/paymentservice/payment/{orderId}")
  ResponseEntity<Payment> payment(@PathVariable String orderId) {
    return ResponseEntity.of(
        database
            .sql("SELECT order_id, user_id, cents FROM payments WHERE order_id = ?")
            .param(orderId)
            .query(Payment.class)
            .optional());
  }
}
