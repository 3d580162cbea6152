package io.antipode.spring;

import com.rabbitmq.client.Channel;
import io.antipode.request.ScopeBlock;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.core.Message;

/**
 * Handles each message of a listener container in a scope of its own, and what the listener
 * publishes by the container's channel, as its reply, in that scope, also where it returns a future
 * or a {@code Mono}. Boot's container factories have it; give it to containers that are made
 * without, last in their chain of advice.
 */
public final class AntipodeListenerAdvice implements MethodInterceptor {
  private static final String MONO = "reactor.core.publisher.Mono";

  private final AntipodeRabbitChannels channels;

  /** Makes an advice. It may be shared by containers. */
  public AntipodeListenerAdvice(AntipodeRabbitChannels channels) {
    this.channels = channels;
  }

  @Override
  public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
    @Nullable Object[] arguments = invocation.getArguments(); // invokeListener(channel, data)
    Object data = arguments[1];
    if (data == null) {
      return invocation.proceed();
    }
    Channel channel = arguments[0] instanceof Channel given ? given : null;
    try (ScopeBlock message = channels.handling(channel, data)) {
      return channel != null
          ? listened(invocation, new MessageChannel(channels.of(channel), message.scope()), message)
          : invocation.proceed();
    }
  }

  private static @Nullable Object listened(
      MethodInvocation invocation, MessageChannel channel, ScopeBlock message) throws Throwable {
    @Nullable Object[] arguments = invocation.getArguments();
    arguments[0] = channel.face();
    try {
      Object result = invocation.proceed();
      if (mayGoOn(arguments[1]) && channel.goesOn()) {
        message.leave();
      }
      return result;
    } finally {
      channel.returned();
    }
  }

  /** Whether the listener may have returned something that completes later. */
  private static boolean mayGoOn(@Nullable Object data) {
    Object first = data instanceof List<?> batch && !batch.isEmpty() ? batch.get(0) : data;
    Method listener =
        first instanceof Message message ? message.getMessageProperties().getTargetMethod() : null;
    if (listener == null) {
      return true;
    }
    Class<?> returned = listener.getReturnType();
    return returned.isAssignableFrom(CompletableFuture.class)
        || CompletableFuture.class.isAssignableFrom(returned)
        || returned.getName().equals(MONO)
        || returned.getName().equals("org.reactivestreams.Publisher");
  }
}
