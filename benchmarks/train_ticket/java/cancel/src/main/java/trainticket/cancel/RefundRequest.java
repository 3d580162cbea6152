package trainticket.cancel;

/**
 * What is put into the queue.
 *
 * @param cents how much is to be refunded
 * @param email who is told
 */
record RefundRequest(String orderId, String userId, long cents, String email) {}
