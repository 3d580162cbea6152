package io.antipode.spring;

import com.rabbitmq.client.Channel;
import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.rabbitmq.RabbitMqInstrumentation;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.connection.ChannelProxy;

/**
 * The channels of Spring's connections, each instrumented once, and the scopes of messages. Shared
 * by the templates and containers of an application. Thread-safe.
 */
public final class AntipodeRabbitChannels {
  private final RabbitMqInstrumentation instrumentation;
  private final Map<Channel, Channel> faces = new HashMap<>();

  /** Instruments channels as a datastore's. */
  public AntipodeRabbitChannels(RabbitMqInstrumentation instrumentation) {
    this.instrumentation = instrumentation;
  }

  /** Returns the instrumented proxy of a channel, of that which stands after one of Spring's. */
  Channel of(Channel channel) {
    Channel target = channel instanceof ChannelProxy proxy ? proxy.getTargetChannel() : channel;
    Channel face;
    synchronized (faces) {
      Channel held = faces.get(target);
      if (held != null) {
        return held;
      }
      face = instrumentation.instrument(target);
      faces.put(target, face);
    }
    target.addShutdownListener(
        signal -> {
          synchronized (faces) {
            faces.remove(target);
          }
        });
    return face;
  }

  /** Opens the scope of a message, or of messages that are handled together. */
  ScopeBlock handling(Object data) {
    List<?> messages = data instanceof List<?> batch ? batch : List.of(data);
    Lineage[] found =
        messages.stream()
            .filter(Message.class::isInstance)
            .map(each -> lineage((Message) each))
            .toArray(Lineage[]::new);
    return Antipode.scope(Lineage.empty().merge(found));
  }

  /** Merges what a message depends on into the current scope, where there is one. */
  Message merged(Message message) {
    Recording.recordRead(lineage(message));
    return message;
  }

  private Lineage lineage(Message message) {
    return instrumentation.lineage(message.getMessageProperties().getHeaders());
  }
}
