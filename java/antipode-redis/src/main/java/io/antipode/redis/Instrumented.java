package io.antipode.redis;

import io.lettuce.core.RedisAsyncCommandsImpl;
import io.lettuce.core.RedisCommandInterruptedException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisReactiveCommandsImpl;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.RedisCommand;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The proxies of an instrumented connection: all of its APIs send by one method, {@code dispatch},
 * and what is not overridden is the connection's own.
 */
final class Instrumented<K, V> implements InvocationHandler {
  private static final Set<String> ENDS = Set.of("multi", "exec", "discard");

  private final StatefulRedisConnectionImpl<K, V> real;
  private final Traffic<K, V> traffic;
  private final StatefulRedisConnection<K, V> face;
  private final RedisAsyncCommandsImpl<K, V> async;
  private final RedisReactiveCommandsImpl<K, V> reactive;
  private final RedisCommands<K, V> sync;
  private final Map<Method, Method> twins = new ConcurrentHashMap<>();

  @SuppressWarnings("unchecked")
  private Instrumented(StatefulRedisConnectionImpl<K, V> real, Traffic<K, V> traffic) {
    this.real = real;
    this.traffic = traffic;
    this.face = (StatefulRedisConnection<K, V>) proxy(StatefulRedisConnection.class, this);
    this.async = new RedisAsyncCommandsImpl<>(face, real.getCodec());
    this.reactive = new RedisReactiveCommandsImpl<>(face, real.getCodec());
    this.sync = (RedisCommands<K, V>) proxy(RedisCommands.class, this::call);
  }

  private static Object proxy(Class<?> type, InvocationHandler handler) {
    return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
  }

  static <K, V> StatefulRedisConnection<K, V> face(
      StatefulRedisConnectionImpl<K, V> real, Traffic<K, V> traffic) {
    return new Instrumented<>(real, traffic).face;
  }

  /** Returns the shim of an instrumented connection; null for any other one. */
  static @Nullable RedisShim shimOf(StatefulRedisConnection<?, ?> connection) {
    return Proxy.isProxyClass(connection.getClass())
            && Proxy.getInvocationHandler(connection) instanceof Instrumented<?, ?> instrumented
        ? instrumented.traffic.shim()
        : null;
  }

  @Override
  @SuppressWarnings("unchecked")
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    if (args != null && args[0] instanceof RedisCommand<?, ?, ?> command) {
      return traffic.dispatch((RedisCommand<K, V, ?>) command);
    }
    if (method.getName().equals("dispatch") && args != null) {
      List<RedisCommand<K, V, ?>> sent = new ArrayList<>();
      for (Object each : (Collection<?>) args[0]) {
        sent.add(traffic.dispatch((RedisCommand<K, V, ?>) each));
      }
      return sent;
    }
    return switch (method.getName()) {
      case "sync" -> sync;
      case "async" -> async;
      case "reactive" -> reactive;
      case "equals" -> args != null && proxy == args[0];
      case "hashCode" -> System.identityHashCode(proxy);
      default -> invoked(method, real, args);
    };
  }

  private static @Nullable Object invoked(Method method, Object on, Object @Nullable [] args)
      throws Throwable {
    try {
      return method.invoke(on, args);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    }
  }

  // The API that waits.

  private @Nullable Object call(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    if (method.getDeclaringClass() == Object.class) {
      return method.getName().equals("equals")
          ? args != null && proxy == args[0]
          : invoked(method, this, args);
    }
    Object result = invoked(twin(method), async, args);
    if (!(result instanceof RedisFuture<?> future)) {
      return result;
    }
    if (real.isMulti() && !ENDS.contains(method.getName())) {
      return null; // It is queued: its answer comes with that of the transaction.
    }
    return answer(future);
  }

  private Method twin(Method method) throws NoSuchMethodException {
    Method known = twins.get(method);
    if (known == null) {
      known = RedisAsyncCommandsImpl.class.getMethod(method.getName(), method.getParameterTypes());
      twins.put(method, known);
    }
    return known;
  }

  /** Returns what a command came to. The client's limit is not for what holds a read back. */
  private Object answer(RedisFuture<?> future) throws ExecutionException {
    long limit = real.getTimeout().toNanos();
    long most = limit <= 0 ? Long.MAX_VALUE : limit;
    while (true) {
      try {
        return future.get(most, TimeUnit.NANOSECONDS);
      } catch (TimeoutException error) {
        if (!traffic.isHeld(future)) {
          future.cancel(true);
          throw new RedisCommandTimeoutException("no answer within " + real.getTimeout());
        }
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new RedisCommandInterruptedException(error);
      } catch (ExecutionException error) {
        if (error.getCause() instanceof RuntimeException cause) {
          throw cause;
        }
        throw new RedisException(error.getCause());
      }
    }
  }
}
