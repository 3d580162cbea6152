package trainticket.cancel;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Asks for refunds, which are made off a queue. */
@Component
class RefundRequests {
  private static final long CONFIRMED_MS = 5_000;

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
  /** Returns once the broker has the request on disk. */
  void request(RefundRequest refund) {
    Lineage asked;
    // Apart from the user's request: a promise whose message failed would be waited for in vain.
    try (ScopeBlock asking = Antipode.scope(Antipode.current())) {
      Promise promise = Antipode.promise("refunds", Duration.ofMinutes(10));
      broker.invoke(
          channel -> {
            channel.convertAndSend(
                queue,
                refund,
                message -> {
                  message.getMessageProperties().setHeader("promise", promise.token());
                  return message;
                });
            channel.waitForConfirmsOrDie(CONFIRMED_MS);
            return true;
          });
      asked = Antipode.current();
    }
    Antipode.transfer(asked);
    if (waits) {
      Barriers.barrier(BarrierOptions.timeout(patience).withOnly("refunds"));
    }
  }
  // --8<-- [end:request]
}
