package trainticket.order;

/**
 * An order of a ticket.
 *
 * @param status 0 not paid, 1 paid, 3 changed, 4 cancelled
 * @param cents its price
 */
record Order(String id, String userId, int status, long cents) {
  static final int CANCELLED = 4;
}
