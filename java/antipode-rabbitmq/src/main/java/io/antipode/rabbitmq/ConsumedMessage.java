package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import io.antipode.lineage.Promise;
import io.antipode.propagation.Headers;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** A message that nobody has settled yet, as its handler shall see it, and its scope. */
final class ConsumedMessage {
  /** As it was published first. */
  final Delivery given;

  final Deferral deferral;
  private final BasicProperties sent;
  private final Scope scope;
  private Scope inner;
  private final Context context;

  /** The barrier that it waits in; null while it is judged or handled. */
  private @Nullable Future<?> wait;

  /** When that barrier is overdue, by {@link System#nanoTime}. */
  private long dueNs;

  private static final TextMapGetter<String> BAGGAGE =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(String header) {
          return List.of(Headers.BAGGAGE);
        }

        @Override
        public @Nullable String get(@Nullable String header, String key) {
          return header;
        }
      };

  /**
   * Takes what was delivered.
   *
   * @param around what was current as it came, such as the span of an instrumentation
   */
  ConsumedMessage(
      Delivery delivered, Context around, long atMs, RabbitMqInstrumentation instrumentation) {
    deferral = Deferral.of(delivered, atMs);
    @Nullable Map<String, Object> headers = deferral.headers();
    sent =
        delivered
            .getProperties()
            .builder()
            .headers(headers)
            .expiration(deferral.expiration())
            .messageId(deferral.messageId())
            .build();
    given =
        new Delivery(
            new Envelope(
                delivered.getEnvelope().getDeliveryTag(),
                delivered.getEnvelope().isRedeliver(),
                deferral.exchange(),
                deferral.routingKey()),
            sent,
            delivered.getBody());
    scope = Scope.ofRequest(instrumentation.lineage(headers), null);
    instrumentation.began(scope, headers);
    inner = scope;
    context = baggage(headers, around);
  }

  /** Returns a context with the baggage of the message's request: that alone, and all of it. */
  private static Context baggage(@Nullable Map<String, Object> headers, Context around) {
    Context none = Baggage.empty().storeInContext(around);
    String text = headers == null ? null : Texts.text(headers.get(Headers.BAGGAGE));
    return text == null ? none : W3CBaggagePropagator.getInstance().extract(none, text, BAGGAGE);
  }

  long tag() {
    return given.getEnvelope().getDeliveryTag();
  }

  /** Returns the properties with which it is published again. */
  BasicProperties again(Map<String, Object> headers) {
    // Its expiration would shorten the delay, or remove the dead letter.
    return sent.builder().headers(headers).expiration(null).build();
  }

  /** Makes its scope current, for one step of it. */
  ScopeBlock enter() {
    return ScopeBlock.within(inner, context);
  }

  /** Does not wait for a promise that its handler will fulfil. */
  void fulfil(Promise promise) {
    inner = scope.fulfilling(promise);
  }

  /** Ends its scope. */
  void end() {
    if (inner != scope) {
      inner.join(scope);
    }
    scope.end();
  }

  // How it waits.

  boolean isWaiting() {
    return wait != null;
  }

  /** Waits in a barrier until a moment. */
  void waitIn(Future<?> barrier, long untilNs) {
    wait = barrier;
    dueNs = untilNs;
  }

  boolean isOverdue(long nowNs) {
    return wait != null && nowNs - dueNs >= 0;
  }

  /** Stops to wait. */
  void waitNoMore() {
    Future<?> barrier = wait;
    wait = null;
    if (barrier != null) {
      boolean ignored = barrier.cancel(false);
    }
  }
}
