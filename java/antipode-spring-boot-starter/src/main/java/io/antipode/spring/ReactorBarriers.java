package io.antipode.spring;

import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.opentelemetry.context.Context;
import org.aopalliance.intercept.MethodInvocation;
import org.reactivestreams.Publisher;
import org.springframework.aop.ProxyMethodInvocation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/** Barriers of methods that return what Reactor runs; each subscription waits. */
final class ReactorBarriers {
  private ReactorBarriers() {}

  static boolean isReactor(Class<?> returned) {
    return returned == Mono.class || returned == Flux.class || returned == Publisher.class;
  }

  static Publisher<?> afterwards(
      BarrierOptions options, Class<?> returned, MethodInvocation invocation) {
    Mono<BarrierResult> met = Mono.deferContextual(view -> waiting(options, view));
    return returned == Mono.class
        ? met.flatMap(result -> (Mono<?>) BarrierInterceptor.proceed(again(invocation)))
        : met.flatMapMany(result -> (Publisher<?>) BarrierInterceptor.proceed(again(invocation)));
  }

  private static Mono<BarrierResult> waiting(BarrierOptions options, ContextView view) {
    Context context = ScopeAccessor.context(view);
    try (io.opentelemetry.context.Scope entered = context.makeCurrent()) {
      return Mono.fromFuture(Barriers.barrierAsync(options));
    }
  }

  private static MethodInvocation again(MethodInvocation invocation) {
    return ((ProxyMethodInvocation) invocation).invocableClone();
  }
}
