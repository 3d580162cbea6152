package io.antipode.activemq;

import io.antipode.messages.Proxies;
import io.antipode.request.Recording;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/** The proxy of a consumer, of a session or a context. */
final class InstrumentedConsumer implements InvocationHandler {
  private final Object real;
  private final ActiveMqInstrumentation instrumentation;

  private InstrumentedConsumer(Object real, ActiveMqInstrumentation instrumentation) {
    this.real = real;
    this.instrumentation = instrumentation;
  }

  static Object of(Object real, ActiveMqInstrumentation instrumentation) {
    return Proxies.of(real, new InstrumentedConsumer(real, instrumentation));
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    if (arguments != null && arguments[0] instanceof MessageListener listener) {
      arguments[0] = new ScopedListener(listener, instrumentation);
    }
    Object result = Proxies.invoke(face, method, real, arguments);
    if (result instanceof Message message) {
      Recording.recordRead(instrumentation.lineage(message));
    }
    return ScopedListener.real(result);
  }
}
