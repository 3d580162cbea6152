package trainticket.insidepayment;

import io.antipode.Antipode;
import io.antipode.lineage.Promise;
import io.antipode.request.ScopeBlock;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.stereotype.Component;

/** Makes refunds off the queue: each once, also if a request is delivered again. */
@Component
class RefundListener {
  private final Payments payments;
  private final Refunds refunds;
  private final RabbitTemplate broker;
  private final String notifications;

  RefundListener(
      Payments payments,
      Refunds refunds,
      RabbitTemplate broker,
      @Value("${train-ticket.notifications-queue}") String notifications) {
    this.payments = payments;
    this.refunds = refunds;
    this.broker = broker;
    this.notifications = notifications;
  }

  // --8<-- [start:refund]
  @RabbitListener(
      queues = "${train-ticket.refunds-queue}",
      autoStartup = "${train-ticket.makes-refunds}",
      concurrency = "4")
  void refund(RefundRequest request, @Header("promise") String token) {
    Promise promise = Promise.parse(token);
    try (ScopeBlock branch = Antipode.fulfilling(promise)) {
      refunds.make(request.refundOf(payments.paid(request.orderId())), promise);
    }
    broker.convertAndSend(notifications, new Refunded(request.orderId(), request.email()));
  }
  // --8<-- [end:refund]
}
