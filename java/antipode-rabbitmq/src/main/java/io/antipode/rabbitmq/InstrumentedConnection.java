package io.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import io.antipode.messages.Proxies;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The proxy of a connection whose channels are instrumented. */
final class InstrumentedConnection implements InvocationHandler {
  private final Connection real;
  private final RabbitMqInstrumentation instrumentation;

  private InstrumentedConnection(Connection real, RabbitMqInstrumentation instrumentation) {
    this.real = real;
    this.instrumentation = instrumentation;
  }

  static Connection of(Connection real, RabbitMqInstrumentation instrumentation) {
    return Proxies.isOf(real, InstrumentedConnection.class)
        ? real
        : (Connection) Proxies.of(real, new InstrumentedConnection(real, instrumentation));
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    Object result = Proxies.invoke(face, method, real, arguments);
    if (result instanceof Channel channel) {
      return InstrumentedChannel.of(channel, instrumentation);
    }
    if (result instanceof Optional<?> found && found.orElse(null) instanceof Channel channel) {
      return Optional.of(InstrumentedChannel.of(channel, instrumentation));
    }
    return result;
  }
}
