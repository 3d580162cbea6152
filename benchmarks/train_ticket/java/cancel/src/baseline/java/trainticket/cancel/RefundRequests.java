package trainticket.cancel;

import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Asks for refunds, which are made off a queue. */
@Component
class RefundRequests {
  private static final long CONFIRMED_MS = 5_000;

  private final RabbitTemplate broker;
  private final String queue;

  RefundRequests(RabbitTemplate broker, @Value("${train-ticket.refunds-queue}") String queue) {
    this.broker = broker;
    this.queue = queue;
  }

  /** Returns once the broker has the request on disk. */
  void request(RefundRequest refund) {
    broker.invoke(
        channel -> {
          channel.convertAndSend(queue, refund);
          channel.waitForConfirmsOrDie(CONFIRMED_MS);
          return true;
        });
  }
}
