package io.antipode.activemq;

import io.antipode.activemq.Outbox.Settled;
import io.antipode.messages.Proxies;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.XAJMSContext;
import jakarta.jms.XASession;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/** The proxy of a session, or of a context, which is a session with its connection. */
final class InstrumentedSession implements InvocationHandler {
  private final Object real;
  private final ActiveMqInstrumentation instrumentation;
  private final Confirms confirms;
  private final Outbox outbox;

  private InstrumentedSession(
      Object real, ActiveMqInstrumentation instrumentation, Confirms confirms) {
    this.real = real;
    this.instrumentation = instrumentation;
    this.confirms = confirms;
    this.outbox = new Outbox(instrumentation);
  }

  static Object of(Object real, ActiveMqInstrumentation instrumentation, Confirms confirms) {
    return Proxies.isOf(real, InstrumentedSession.class)
        ? real
        : Proxies.of(real, new InstrumentedSession(real, instrumentation, confirms));
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    return switch (method.getName()) {
      case "commit" -> commit(face, method);
      case "rollback", "close" -> rollBack(face, method);
      case "setMessageListener" -> listen(face, method, arguments);
      case "getMessageListener" -> ScopedListener.real(call(face, method, arguments));
      default -> made(face, call(face, method, arguments));
    };
  }

  private @Nullable Object call(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    return Proxies.invoke(face, method, real, arguments);
  }

  private @Nullable Object made(Object face, @Nullable Object made) {
    if (made == real) { // XASession.getSession
      return face;
    }
    if (made instanceof MessageProducer || made instanceof JMSProducer) {
      return InstrumentedProducer.of(made, this, outbox);
    }
    if (made instanceof MessageConsumer || made instanceof JMSConsumer) {
      return InstrumentedConsumer.of(made, instrumentation);
    }
    return InstrumentedOrigin.made(made, instrumentation, confirms);
  }

  private @Nullable Object commit(Object face, Method method) throws Throwable {
    Object result;
    try {
      result = call(face, method, null);
    } catch (Throwable error) {
      outbox.inDoubt();
      throw error;
    }
    outbox.committed();
    return result;
  }

  private @Nullable Object rollBack(Object face, Method method) throws Throwable {
    try {
      return call(face, method, null);
    } finally {
      outbox.rolledBack();
    }
  }

  private @Nullable Object listen(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    if (arguments != null && arguments[0] instanceof MessageListener listener) {
      arguments[0] = new ScopedListener(listener, instrumentation);
    }
    return call(face, method, arguments);
  }

  /** Returns how it becomes known whether the broker has a message. */
  Settled settled(boolean isPersistent, boolean hasListener) throws JMSException {
    boolean isTransacted =
        real instanceof Session session
            ? session.getTransacted()
            : ((JMSContext) real).getTransacted();
    if (isTransacted) {
      boolean isXa = real instanceof XASession || real instanceof XAJMSContext;
      return isXa ? Settled.ELSEWHERE : Settled.COMMITTED;
    }
    if (hasListener) {
      return Settled.LATER;
    }
    return confirms.of(isPersistent) ? Settled.CONFIRMED : Settled.NEVER;
  }

  /** Returns the context, for messages that its producers make of bodies. */
  JMSContext context() {
    return (JMSContext) real;
  }
}
