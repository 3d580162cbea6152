package io.antipode.spring;

import io.antipode.activemq.ActiveMqInstrumentation;
import io.antipode.request.ScopeBlock;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.Session;
import org.aopalliance.intercept.MethodInterceptor;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.jms.config.AbstractJmsListenerContainerFactory;
import org.springframework.jms.listener.AbstractMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/** Listeners of Spring's containers, each message in a scope of its own. */
final class JmsListeners {
  private JmsListeners() {}

  /** Returns a factory whose containers handle each message in a scope. */
  static Object scoping(
      AbstractJmsListenerContainerFactory<?> containers, ActiveMqInstrumentation instrumentation) {
    ProxyFactory proxy = new ProxyFactory(containers);
    proxy.setProxyTargetClass(true);
    MethodInterceptor scoping =
        call -> {
          Object made = call.proceed();
          if (made instanceof AbstractMessageListenerContainer container) {
            scope(container, instrumentation);
          }
          return made;
        };
    proxy.addAdvice(scoping);
    return proxy.getProxy(containers.getClass().getClassLoader());
  }

  /** Lets a container handle each message in a scope; once. */
  static void scope(
      AbstractMessageListenerContainer container, ActiveMqInstrumentation instrumentation) {
    Object listener = container.getMessageListener();
    if (listener instanceof SessionAwareMessageListener<?> given
        && !(listener instanceof ScopedSessionListener)) {
      @SuppressWarnings("unchecked") // Containers call it so, too.
      SessionAwareMessageListener<Message> real = (SessionAwareMessageListener<Message>) given;
      container.setMessageListener(new ScopedSessionListener(real, instrumentation));
    } else if (listener instanceof MessageListener given) {
      container.setMessageListener(instrumentation.instrument(given));
    }
  }

  private record ScopedSessionListener(
      SessionAwareMessageListener<Message> real, ActiveMqInstrumentation instrumentation)
      implements SessionAwareMessageListener<Message> {
    @Override
    public void onMessage(Message message, @Nullable Session session) throws JMSException {
      try (ScopeBlock block = instrumentation.message(message)) {
        real.onMessage(message, session);
      }
    }
  }
}
