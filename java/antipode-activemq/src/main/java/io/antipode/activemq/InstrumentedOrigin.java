package io.antipode.activemq;

import io.antipode.messages.Proxies;
import jakarta.jms.Connection;
import jakarta.jms.JMSContext;
import jakarta.jms.Session;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/** The proxy of a factory or a connection: what it makes is instrumented. */
final class InstrumentedOrigin implements InvocationHandler {
  private final Object real;
  private final ActiveMqInstrumentation instrumentation;
  private final Confirms confirms;

  private InstrumentedOrigin(
      Object real, ActiveMqInstrumentation instrumentation, Confirms confirms) {
    this.real = real;
    this.instrumentation = instrumentation;
    this.confirms = confirms;
  }

  static Object of(Object real, ActiveMqInstrumentation instrumentation, Confirms before) {
    return Proxies.isOf(real, InstrumentedOrigin.class)
        ? real
        : Proxies.of(
            real, new InstrumentedOrigin(real, instrumentation, Confirms.of(real, before)));
  }

  /** Returns what a factory made, instrumented. */
  static @Nullable Object made(
      @Nullable Object made, ActiveMqInstrumentation instrumentation, Confirms confirms) {
    if (made instanceof Session || made instanceof JMSContext) {
      return InstrumentedSession.of(made, instrumentation, confirms);
    }
    return made instanceof Connection ? of(made, instrumentation, confirms) : made;
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    return made(Proxies.invoke(face, method, real, arguments), instrumentation, confirms);
  }
}
