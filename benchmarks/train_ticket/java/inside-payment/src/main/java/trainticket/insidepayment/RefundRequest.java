package trainticket.insidepayment;

/**
 * What comes off the queue.
 *
 * @param cents how much is to be refunded
 * @param email who is told
 */
record RefundRequest(String orderId, String userId, long cents, String email) {
  /** Returns the refund, of an order for which so much was paid: never more than that. */
  Money refundOf(long paid) {
    long back = Math.min(cents, paid);
    return new Money(orderId, userId, back, paid - back, Money.REFUND);
  }
}
