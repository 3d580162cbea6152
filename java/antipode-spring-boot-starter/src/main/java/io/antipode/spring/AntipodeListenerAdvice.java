package io.antipode.spring;

import com.rabbitmq.client.Channel;
import io.antipode.ScopeBlock;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/**
 * Handles each message of a listener container in a scope of its own, and what the listener
 * publishes by the container's channel, as its reply, in that scope. Boot's container factories
 * have it; give it to containers that are made without, last in their chain of advice.
 */
public final class AntipodeListenerAdvice implements MethodInterceptor {
  private final AntipodeRabbitChannels channels;

  /** Makes an advice. It may be shared by containers. */
  public AntipodeListenerAdvice(AntipodeRabbitChannels channels) {
    this.channels = channels;
  }

  @Override
  public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
    @Nullable Object[] arguments = invocation.getArguments(); // invokeListener(channel, data)
    if (arguments[0] instanceof Channel channel) {
      arguments[0] = channels.of(channel);
    }
    Object data = arguments[1];
    if (data == null) {
      return invocation.proceed();
    }
    try (ScopeBlock message = channels.handling(data)) {
      return invocation.proceed();
    }
  }
}
