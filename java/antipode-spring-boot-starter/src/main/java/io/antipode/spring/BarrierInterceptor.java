package io.antipode.spring;

import io.antipode.ConfigurationException;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.opentelemetry.context.Context;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.util.ClassUtils;

/** Waits before a method with {@link Barrier}, in the way of what it returns. */
final class BarrierInterceptor implements MethodInterceptor {
  private static final boolean HAS_REACTOR =
      ClassUtils.isPresent(
          "reactor.core.publisher.Mono", BarrierInterceptor.class.getClassLoader());

  private final Map<Method, BarrierOptions> known = new ConcurrentHashMap<>();

  @Override
  public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
    BarrierOptions options = options(invocation);
    Class<?> returned = invocation.getMethod().getReturnType();
    if (returned == CompletableFuture.class || returned == CompletionStage.class) {
      return afterwards(options, held(invocation));
    }
    if (HAS_REACTOR && ReactorBarriers.isReactor(returned)) {
      return ReactorBarriers.afterwards(options, returned, held(invocation));
    }
    Barriers.barrier(options);
    return invocation.proceed();
  }

  private BarrierOptions options(MethodInvocation invocation) {
    Object bean = Objects.requireNonNull(invocation.getThis());
    return known.computeIfAbsent(
        AopUtils.getMostSpecificMethod(invocation.getMethod(), bean.getClass()),
        method ->
            read(
                method,
                Objects.requireNonNull(
                    AnnotatedElementUtils.findMergedAnnotation(method, Barrier.class))));
  }

  private static BarrierOptions read(Method method, Barrier barrier) {
    BarrierOptions options = BarrierOptions.timeout(timeout(method, barrier.timeout()));
    options = barrier.only().length == 0 ? options : options.withOnly(barrier.only());
    options = options.withExclude(barrier.exclude());
    return barrier.atRead() ? options.atRead() : options;
  }

  private static Duration timeout(Method method, String text) {
    Duration parsed = Durations.parsedOrNull(text);
    if (parsed == null) {
      throw new ConfigurationException(
          "the timeout of @Barrier on " + method + " must be like 2s, 500ms or PT2S, not " + text);
    }
    return parsed;
  }

  /** An invocation that goes on after its caller has returned. */
  private static MethodInvocation held(MethodInvocation invocation) {
    return ((ProxyMethodInvocation) invocation).invocableClone();
  }

  private static CompletableFuture<Object> afterwards(
      BarrierOptions options, MethodInvocation invocation) {
    Context context = Context.current();
    CompletableFuture<BarrierResult> met;
    try {
      met = Barriers.barrierAsync(options);
    } catch (RuntimeException error) {
      return CompletableFuture.failedFuture(error);
    }
    CompletableFuture<Object> result =
        met.thenCompose(context.wrapFunction(unused -> stage(invocation)));
    // Whoever cancels what it was given cancels the barrier.
    CompletableFuture<Object> ignored = result.whenComplete((value, error) -> met.cancel(false));
    return result;
  }

  @SuppressWarnings("unchecked") // What the method returns is what the caller gets.
  private static CompletionStage<Object> stage(MethodInvocation invocation) {
    return (CompletionStage<Object>) proceed(invocation);
  }

  static Object proceed(MethodInvocation invocation) {
    try {
      return Objects.requireNonNull(invocation.proceed(), "the method returned null");
    } catch (RuntimeException | Error error) {
      throw error;
    } catch (Throwable error) {
      throw new CompletionException(error);
    }
  }
}
