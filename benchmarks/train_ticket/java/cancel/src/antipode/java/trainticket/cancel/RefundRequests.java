package trainticket.cancel;

import io.antipode.Antipode;
import io.antipode.lineage.Promise;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import java.time.Duration;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Asks for refunds, which are made off a queue. */
@Component
class RefundRequests {
  private final RabbitTemplate broker;
  private final String queue;
  private final boolean waits;
  private final Duration patience;

  RefundRequests(
      RabbitTemplate broker,
      @Value("${train-ticket.refunds-queue}") String queue,
      @Value("${train-ticket.barrier-before-answer:false}") boolean waits,
      @Value("${train-ticket.patience:5s}") Duration patience) {
    this.broker = broker;
    this.queue = queue;
    this.waits = waits;
    this.patience = patience;
  }

  // --8<-- [start:request]
  void request(RefundRequest refund) {
    Promise promise = Antipode.promise("refunds", Duration.ofMinutes(10));
    broker.convertAndSend(
        queue,
        refund,
        message -> {
          message.getMessageProperties().setHeader("promise", promise.token());
          return message;
        });
    if (waits) {
      Barriers.barrier(BarrierOptions.timeout(patience).withOnly("refunds"));
    }
  }
  // --8<-- [end:request]
}
