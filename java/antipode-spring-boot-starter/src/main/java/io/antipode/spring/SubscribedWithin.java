package io.antipode.spring;

import io.opentelemetry.context.Context;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;

/** Subscribes to a source while a context of OpenTelemetry is current. */
final class SubscribedWithin<T> extends MonoOperator<T, T> {
  private final Context context;

  SubscribedWithin(Mono<? extends T> source, Context context) {
    super(source);
    this.context = context;
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> actual) {
    try (io.opentelemetry.context.Scope entered = context.makeCurrent()) {
      source.subscribe(actual);
    }
  }
}
