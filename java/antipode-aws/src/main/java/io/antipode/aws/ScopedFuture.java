package io.antipode.aws;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The result of an asynchronous call, whose dependents run in the context that it was made in: what
 * they do belongs to the same request, whichever thread completes it. Those that are given an
 * executor of the application's run in whatever context that has.
 */
final class ScopedFuture<T> extends CompletableFuture<T> {
  private final Context context;

  private ScopedFuture(Context context) {
    this.context = context;
  }

  /** Returns one of the current context. */
  static <T> ScopedFuture<T> inCurrent() {
    return new ScopedFuture<>(Context.current());
  }

  /** Completes it, and runs what depends on it in this thread. */
  void ends(@Nullable T reply, @Nullable Throwable error) {
    try (Scope ignored = context.makeCurrent()) {
      boolean unused = error == null ? complete(reply) : completeExceptionally(error);
    }
  }

  @Override
  public <U> CompletableFuture<U> newIncompleteFuture() {
    return new ScopedFuture<>(context);
  }

  @Override
  public Executor defaultExecutor() {
    return context.wrap(super.defaultExecutor());
  }
}
