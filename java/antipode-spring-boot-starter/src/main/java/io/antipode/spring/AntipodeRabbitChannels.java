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
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.connection.ChannelProxy;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;

/**
 * The channels of Spring's connections, each instrumented once, and the scopes of messages. Shared
 * by the templates and containers of an application. Thread-safe.
 */
public final class AntipodeRabbitChannels {
  private final RabbitMqInstrumentation instrumentation;

  /** Those that a rule names by their address; null of others. */
  private final Function<ConnectionFactory, @Nullable RabbitMqInstrumentation> rule;

  private final Map<Channel, Instrumented> faces = new HashMap<>();

  private record Instrumented(Channel face, RabbitMqInstrumentation instrumentation) {}

  /** Instruments channels as a datastore's. */
  public AntipodeRabbitChannels(RabbitMqInstrumentation instrumentation) {
    this(instrumentation, connections -> null);
  }

  /** Instruments channels as a datastore's, but those of connections that a rule names. */
  AntipodeRabbitChannels(
      RabbitMqInstrumentation instrumentation,
      Function<ConnectionFactory, @Nullable RabbitMqInstrumentation> rule) {
    this.instrumentation = instrumentation;
    this.rule = rule;
  }

  private RabbitMqInstrumentation instrumentation(ConnectionFactory connections) {
    RabbitMqInstrumentation named = rule.apply(connections);
    return named == null ? instrumentation : named;
  }

  /** Returns the instrumented proxy of a channel, of that which stands after one of Spring's. */
  Channel of(Channel channel, ConnectionFactory connections) {
    return instrumented(channel, instrumentation(connections)).face;
  }

  /** As {@link #of(Channel, ConnectionFactory)}, of a channel that may be instrumented already. */
  Channel of(Channel channel) {
    return instrumented(channel, instrumentation).face;
  }

  private Instrumented instrumented(Channel channel, RabbitMqInstrumentation how) {
    Channel target = channel instanceof ChannelProxy proxy ? proxy.getTargetChannel() : channel;
    Instrumented made;
    synchronized (faces) {
      Instrumented held = faces.get(target);
      if (held != null) {
        return held;
      }
      made = new Instrumented(how.instrument(target), how);
      faces.put(target, made);
    }
    target.addShutdownListener(
        signal -> {
          synchronized (faces) {
            faces.remove(target);
          }
        });
    return made;
  }

  /**
   * Opens the scope of a message, or of messages that are handled together.
   *
   * @param channel on which they came; null where that is not known
   */
  ScopeBlock handling(@Nullable Channel channel, Object data) {
    RabbitMqInstrumentation how =
        channel == null ? instrumentation : instrumented(channel, instrumentation).instrumentation;
    List<?> messages = data instanceof List<?> batch ? batch : List.of(data);
    List<Message> handled =
        messages.stream().filter(Message.class::isInstance).map(Message.class::cast).toList();
    Lineage[] found = handled.stream().map(each -> lineage(how, each)).toArray(Lineage[]::new);
    ScopeBlock block = Antipode.scope(Lineage.empty().merge(found));
    for (Message each : handled) {
      how.began(block.scope(), each.getMessageProperties().getHeaders());
    }
    return block;
  }

  /** Merges what a message depends on into the current scope, where there is one. */
  Message merged(Message message, ConnectionFactory connections) {
    Recording.recordRead(lineage(instrumentation(connections), message));
    return message;
  }

  private static Lineage lineage(RabbitMqInstrumentation how, Message message) {
    return how.lineage(message.getMessageProperties().getHeaders());
  }
}
