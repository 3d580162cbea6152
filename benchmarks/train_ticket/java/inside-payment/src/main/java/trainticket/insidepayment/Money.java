package trainticket.insidepayment;

import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.core.mapping.Document;

/**
 * Money that a user got back.
 *
 * @param cents how much
 * @param kept how much of what was paid stays here
 * @param type D for a refund
 */
@Document("money")
record Money(@Id String orderId, String userId, long cents, long kept, String type) {
  static final String REFUND = "D";
}
