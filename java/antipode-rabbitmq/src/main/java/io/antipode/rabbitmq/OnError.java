package io.antipode.rabbitmq;

/** What becomes of a message whose handler failed. */
public enum OnError {
  /** It goes back to its queue, and {@link RabbitMqConsumer#run} ends with the error. */
  RAISE,
  /** It goes back to its queue, and comes again at once. */
  REQUEUE,
  /** It comes again after a delay, within its attempts. */
  DEFER,
  /** It is given up. */
  DEAD_LETTER
}
