package io.antipode.activemq;

import io.antipode.activemq.Outbox.Outgoing;
import io.antipode.activemq.Outbox.Settled;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Proxies;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The proxy of a producer, of a session or a context. */
final class InstrumentedProducer implements InvocationHandler {
  private final Object real;
  private final InstrumentedSession session;
  private final Outbox outbox;
  private @Nullable CompletionListener async;

  private InstrumentedProducer(Object real, InstrumentedSession session, Outbox outbox) {
    this.real = real;
    this.session = session;
    this.outbox = outbox;
  }

  static Object of(Object real, InstrumentedSession session, Outbox outbox) {
    return Proxies.of(real, new InstrumentedProducer(real, session, outbox));
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    Object result =
        switch (method.getName()) {
          case "send", "publish" ->
              real instanceof JMSProducer producer
                  ? send(producer, face, method, Objects.requireNonNull(arguments))
                  : send((MessageProducer) real, face, method, Objects.requireNonNull(arguments));
          case "getAsync" -> async;
          case "setAsync" -> setAsync(face, method, Objects.requireNonNull(arguments));
          default -> Proxies.invoke(face, method, real, arguments);
        };
    return result == real ? face : result;
  }

  // Of a session.

  private @Nullable Object send(
      MessageProducer producer, Object face, Method method, @Nullable Object[] arguments)
      throws Throwable {
    boolean isTo = Destination.class.isAssignableFrom(method.getParameterTypes()[0]);
    int index = isTo ? 1 : 0;
    if (!(arguments[index] instanceof Message message)) {
      return Proxies.invoke(face, method, real, arguments);
    }
    Destination destination = isTo ? (Destination) arguments[0] : producer.getDestination();
    boolean hasMode = method.getParameterCount() > index + 2;
    int mode = hasMode ? (int) arguments[index + 1] : producer.getDeliveryMode();
    int last = arguments.length - 1;
    CompletionListener listener =
        arguments[last] instanceof CompletionListener given ? given : null;
    boolean isPersistent = mode == DeliveryMode.PERSISTENT;
    Settled settled = session.settled(isPersistent, listener != null);
    Outgoing given = new Outgoing(message, destination, isPersistent, settled, Map.of());
    return outbox.send(
        given,
        (copy, pending, headers) -> {
          arguments[index] = copy;
          if (listener != null) {
            arguments[last] = new SettlingListener(listener, outbox, given, pending);
          }
          return Proxies.invoke(face, method, real, arguments);
        });
  }

  // Of a context.

  private @Nullable Object setAsync(Object face, Method method, @Nullable Object[] arguments)
      throws Throwable {
    Object result = Proxies.invoke(face, method, real, arguments);
    async = (CompletionListener) arguments[0];
    return result;
  }

  private @Nullable Object send(
      JMSProducer producer, Object face, Method method, @Nullable Object[] arguments)
      throws Throwable {
    Destination destination = (Destination) arguments[0];
    Class<?> type = method.getParameterTypes()[1];
    Message message = Bodies.message(session.context(), type, arguments[1]);
    if (message == null) {
      return Proxies.invoke(face, method, real, arguments);
    }
    CompletionListener listener = async;
    boolean isPersistent = producer.getDeliveryMode() == DeliveryMode.PERSISTENT;
    Settled settled = session.settled(isPersistent, listener != null);
    Map<String, Object> further = new HashMap<>();
    for (String name : producer.getPropertyNames()) {
      further.put(name, producer.getObjectProperty(name));
    }
    Outgoing given = new Outgoing(message, destination, isPersistent, settled, further);
    return outbox.send(
        given,
        (copy, pending, headers) -> {
          if (listener != null) {
            JMSProducer ignored =
                producer.setAsync(new SettlingListener(listener, outbox, given, pending));
          }
          try {
            override(producer, further, headers.headers());
            return producer.send(destination, copy);
          } finally {
            override(producer, further, further);
          }
        });
  }

  /** Gives those of this library's properties that a producer adds itself other values. */
  private static void override(
      JMSProducer producer, Map<String, Object> further, @Nullable Map<String, Object> values) {
    for (String name : MessageHeaders.NAMES) {
      if (values != null && further.containsKey(name) && values.get(name) != null) {
        JMSProducer ignored = producer.setProperty(name, values.get(name));
      }
    }
  }
}
