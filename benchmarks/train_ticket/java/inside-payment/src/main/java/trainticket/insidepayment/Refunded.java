package trainticket.insidepayment;

/**
 * What the notification service tells a user of.
 *
 * @param email whom
 */
record Refunded(String orderId, String email) {}
