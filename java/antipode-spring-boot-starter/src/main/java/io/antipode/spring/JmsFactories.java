package io.antipode.spring;

import io.antipode.activemq.ActiveMqInstrumentation;
import jakarta.jms.ConnectionFactory;
import java.util.Arrays;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.jspecify.annotations.Nullable;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.jms.connection.DelegatingConnectionFactory;
import org.springframework.jms.connection.SingleConnectionFactory;
import org.springframework.util.ClassUtils;

/**
 * Factories of connections. What connects to a broker is instrumented, and never what stands before
 * it: a message would be named twice.
 */
final class JmsFactories {
  private static final boolean HAS_POOLS =
      ClassUtils.isPresent(
          "org.messaginghub.pooled.jms.JmsPoolConnectionFactory",
          JmsFactories.class.getClassLoader());

  private final ActiveMqInstrumentation instrumentation;

  /** Instruments what a factory makes. */
  private record Instrumenting(ConnectionFactory factory, ActiveMqInstrumentation instrumentation)
      implements MethodInterceptor {
    @Override
    public @Nullable Object invoke(MethodInvocation call) throws Throwable {
      return instrumentation.instrumentMade(call.proceed(), factory);
    }
  }

  JmsFactories(ActiveMqInstrumentation instrumentation) {
    this.instrumentation = instrumentation;
  }

  /** Returns a bean, instrumented: of the same class, for whoever injects that. */
  ConnectionFactory bean(ConnectionFactory factory) {
    if (factory instanceof ActiveMQConnectionFactory && !isProxied(factory)) {
      return proxied(factory);
    }
    within(factory);
    return factory;
  }

  /** Returns whether connections of a factory are instrumented. */
  boolean isInstrumented(@Nullable ConnectionFactory factory) {
    ConnectionFactory target = factory == null ? null : target(factory);
    return isProxied(factory) || (target != null && isInstrumented(target));
  }

  private static boolean isProxied(@Nullable ConnectionFactory factory) {
    return factory instanceof Advised advised
        && Arrays.stream(advised.getAdvisors())
            .anyMatch(advisor -> advisor.getAdvice() instanceof Instrumenting);
  }

  /** Instruments what a caching or pooling factory connects by. */
  private void within(ConnectionFactory factory) {
    ConnectionFactory target = target(factory);
    if (target == null) {
      return;
    }
    ConnectionFactory found = bean(target);
    if (found == target) {
      return;
    }
    if (factory instanceof SingleConnectionFactory single) {
      single.setTargetConnectionFactory(found);
    } else if (factory instanceof DelegatingConnectionFactory delegating) {
      delegating.setTargetConnectionFactory(found);
    } else {
      Pools.setTarget(factory, found);
    }
  }

  private static @Nullable ConnectionFactory target(ConnectionFactory factory) {
    if (factory instanceof SingleConnectionFactory single) {
      return single.getTargetConnectionFactory();
    }
    if (factory instanceof DelegatingConnectionFactory delegating) {
      return delegating.getTargetConnectionFactory();
    }
    return HAS_POOLS ? Pools.target(factory) : null;
  }

  private ConnectionFactory proxied(ConnectionFactory factory) {
    ProxyFactory proxy = new ProxyFactory(factory);
    proxy.setProxyTargetClass(true);
    proxy.addAdvice(new Instrumenting(factory, instrumentation));
    return (ConnectionFactory) proxy.getProxy(factory.getClass().getClassLoader());
  }

  /** What is loaded where pooled-jms is there. */
  private static final class Pools {
    static @Nullable ConnectionFactory target(ConnectionFactory factory) {
      return factory instanceof JmsPoolConnectionFactory pool
          ? (ConnectionFactory) pool.getConnectionFactory()
          : null;
    }

    static void setTarget(ConnectionFactory factory, ConnectionFactory target) {
      ((JmsPoolConnectionFactory) factory).setConnectionFactory(target);
    }
  }
}
