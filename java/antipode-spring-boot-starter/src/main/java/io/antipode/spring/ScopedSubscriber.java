package io.antipode.spring;

import io.antipode.request.Scope;
import io.opentelemetry.context.Context;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Fuseable;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Operators;
import reactor.core.scheduler.Schedulers;

/**
 * Runs what one operator of Reactor hands on, in both directions, in the scope in which it was
 * subscribed to, whatever thread that happens in. Its context of Reactor has the scope, too.
 *
 * <p>It is a queue only because operators that could be fused ask for one; it is never fused.
 */
final class ScopedSubscriber<T> implements CoreSubscriber<T>, Fuseable.QueueSubscription<T> {
  private final CoreSubscriber<? super T> actual;
  private final Scope scope;
  private final reactor.util.context.Context context;
  private @Nullable Subscription source;

  private ScopedSubscriber(
      CoreSubscriber<? super T> actual, Scope scope, reactor.util.context.Context context) {
    this.actual = actual;
    this.scope = scope;
    this.context = context;
  }

  /**
   * Lets scopes follow Reactor from thread to thread, by hooks of this library's own: what the
   * application says of Reactor's automatic context propagation stays as it is.
   */
  static void install() {
    Function<? super Publisher<Object>, ? extends Publisher<Object>> lift =
        Operators.liftPublisher(
            publisher -> !(publisher instanceof Fuseable.ScalarCallable),
            (publisher, subscriber) -> of(subscriber));
    Hooks.onEachOperator(ScopeAccessor.KEY, lift);
    Schedulers.onScheduleHook(ScopeAccessor.KEY, ScopedSubscriber::scheduled);
  }

  private static <T> CoreSubscriber<? super T> of(CoreSubscriber<? super T> actual) {
    reactor.util.context.Context context = actual.currentContext();
    Scope held = context.getOrDefault(ScopeAccessor.KEY, null);
    if (held != null) {
      return new ScopedSubscriber<>(actual, held, context);
    }
    Scope current = Scope.currentOrNull();
    return current == null
        ? actual
        : new ScopedSubscriber<>(actual, current, context.put(ScopeAccessor.KEY, current));
  }

  private static Runnable scheduled(Runnable task) {
    Scope scope = Scope.currentOrNull();
    return scope == null ? task : () -> within(scope, task);
  }

  private static void within(Scope scope, Runnable step) {
    Context current = Context.current();
    if (Scope.fromContextOrNull(current) == scope) {
      step.run();
      return;
    }
    try (io.opentelemetry.context.Scope entered = scope.storeInContext(current).makeCurrent()) {
      step.run();
    }
  }

  @Override
  public reactor.util.context.Context currentContext() {
    return context;
  }

  @Override
  public void onSubscribe(Subscription given) {
    source = given;
    within(scope, () -> actual.onSubscribe(this));
  }

  @Override
  public void onNext(T value) {
    within(scope, () -> actual.onNext(value));
  }

  @Override
  public void onError(Throwable error) {
    within(scope, () -> actual.onError(error));
  }

  @Override
  public void onComplete() {
    within(scope, actual::onComplete);
  }

  @Override
  public void request(long count) {
    within(scope, () -> Objects.requireNonNull(source).request(count));
  }

  @Override
  public void cancel() {
    within(scope, () -> Objects.requireNonNull(source).cancel());
  }

  @Override
  public int requestFusion(int mode) {
    return Fuseable.NONE;
  }

  @Override
  public @Nullable T poll() {
    return null;
  }

  @Override
  public int size() {
    return 0;
  }

  @Override
  public boolean isEmpty() {
    return true;
  }

  @Override
  public void clear() {}
}
