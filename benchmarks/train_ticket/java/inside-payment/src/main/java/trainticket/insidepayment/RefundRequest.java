package trainticket.insidepayment;

/**
 * What comes off the queue.
 *
 * @param cents how much is to be refunded
 * @param email who is told
 */
record RefundRequest(String orderId, String userId, long cents, String email) {
  /** Returns the refund, of an order for which so much was paid. */
  Money refundOf(long paid) {
    return new Money(orderId, userId, cents, paid - cents, Money.REFUND);
  }
}
