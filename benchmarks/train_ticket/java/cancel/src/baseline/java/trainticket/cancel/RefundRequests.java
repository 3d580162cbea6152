package trainticket.cancel;

import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Asks for refunds, which are made off a queue. */
@Component
class RefundRequests {
  private final RabbitTemplate broker;
  private final String queue;

  RefundRequests(RabbitTemplate broker, @Value("${train-ticket.refunds-queue}") String queue) {
    this.broker = broker;
    this.queue = queue;
  }

  void request(RefundRequest refund) {
    broker.convertAndSend(queue, refund);
  }
}
