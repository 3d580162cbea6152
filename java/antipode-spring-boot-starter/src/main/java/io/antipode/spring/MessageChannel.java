package io.antipode.spring;

import com.rabbitmq.client.Channel;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The channel that the listener of one message has. What another thread publishes by it, or any
 * thread after the listener has returned, is published in the scope of the message: such as the
 * reply of a listener that returns a future, whatever completes that.
 */
final class MessageChannel implements InvocationHandler {
  private static final Set<String> SETTLING = Set.of("basicAck", "basicNack", "basicReject");

  private final Channel channel;
  private final Scope scope;

  /** Where the listener runs; null once it has returned. */
  private volatile @Nullable Thread listening = Thread.currentThread();

  // Under the lock.
  private boolean settled;
  private boolean goesOn;

  MessageChannel(Channel channel, Scope scope) {
    this.channel = channel;
    this.scope = scope;
  }

  Channel face() {
    return (Channel)
        Proxy.newProxyInstance(
            channel.getClass().getClassLoader(), channel.getClass().getInterfaces(), this);
  }

  /** The listener has returned, or thrown. */
  void returned() {
    listening = null;
  }

  /**
   * Returns whether the message is still handled, although its listener has returned. Its scope
   * ends once it is acknowledged or rejected.
   */
  synchronized boolean goesOn() {
    goesOn = !settled;
    return goesOn;
  }

  private synchronized void settled() {
    settled = true;
    if (goesOn) {
      scope.end();
    }
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    if (method.getName().equals("equals") && arguments != null) {
      return face == arguments[0];
    }
    if (method.getName().equals("hashCode")) {
      return System.identityHashCode(face);
    }
    if (Thread.currentThread() == listening) {
      return called(method, arguments);
    }
    try (ScopeBlock message = ScopeBlock.within(scope)) {
      return called(method, arguments);
    }
  }

  private @Nullable Object called(Method method, Object @Nullable [] arguments) throws Throwable {
    try {
      return method.invoke(channel, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    } finally {
      if (SETTLING.contains(method.getName())) {
        settled();
      }
    }
  }
}
