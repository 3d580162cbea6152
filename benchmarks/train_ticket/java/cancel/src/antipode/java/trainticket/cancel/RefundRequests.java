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

  RefundRequests(
      RabbitTemplate broker,
      @Value("${train-ticket.refunds-queue}") String queue,
      @Value("${train-ticket.barrier-before-answer:false}") boolean waits) {
    this.broker = broker;
    this.queue = queue;
    this.waits = waits;
  }

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
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(5)).withOnly("refunds"));
    }
  }
}
