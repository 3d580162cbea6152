package io.antipode.aws;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The result of an asynchronous call, whose dependents run in the context that it was made in: what
 * they do belongs to the same request, whichever thread or other future completes them.
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
    try (Scope ignored = context.makeCurrent()) { // Also for what CompletableFuture.allOf makes.
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

  // What depends on it.

  @Override
  public <U> CompletableFuture<U> thenApply(Function<? super T, ? extends U> action) {
    return super.thenApply(context.wrapFunction(action::apply));
  }

  @Override
  public <U> CompletableFuture<U> thenApplyAsync(
      Function<? super T, ? extends U> action, Executor executor) {
    return super.thenApplyAsync(action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<Void> thenAccept(Consumer<? super T> action) {
    return super.thenAccept(context.wrapConsumer(action::accept));
  }

  @Override
  public CompletableFuture<Void> thenAcceptAsync(Consumer<? super T> action, Executor executor) {
    return super.thenAcceptAsync(action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<Void> thenRun(Runnable action) {
    return super.thenRun(context.wrap(action));
  }

  @Override
  public CompletableFuture<Void> thenRunAsync(Runnable action, Executor executor) {
    return super.thenRunAsync(action, context.wrap(executor));
  }

  @Override
  public <U, V> CompletableFuture<V> thenCombine(
      CompletionStage<? extends U> other, BiFunction<? super T, ? super U, ? extends V> action) {
    return super.thenCombine(other, context.wrapFunction(action::apply));
  }

  @Override
  public <U, V> CompletableFuture<V> thenCombineAsync(
      CompletionStage<? extends U> other,
      BiFunction<? super T, ? super U, ? extends V> action,
      Executor executor) {
    return super.thenCombineAsync(other, action, context.wrap(executor));
  }

  @Override
  public <U> CompletableFuture<Void> thenAcceptBoth(
      CompletionStage<? extends U> other, BiConsumer<? super T, ? super U> action) {
    return super.thenAcceptBoth(other, context.wrapConsumer(action::accept));
  }

  @Override
  public <U> CompletableFuture<Void> thenAcceptBothAsync(
      CompletionStage<? extends U> other,
      BiConsumer<? super T, ? super U> action,
      Executor executor) {
    return super.thenAcceptBothAsync(other, action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<Void> runAfterBoth(CompletionStage<?> other, Runnable action) {
    return super.runAfterBoth(other, context.wrap(action));
  }

  @Override
  public CompletableFuture<Void> runAfterBothAsync(
      CompletionStage<?> other, Runnable action, Executor executor) {
    return super.runAfterBothAsync(other, action, context.wrap(executor));
  }

  @Override
  public <U> CompletableFuture<U> applyToEither(
      CompletionStage<? extends T> other, Function<? super T, U> action) {
    return super.applyToEither(other, context.wrapFunction(action::apply));
  }

  @Override
  public <U> CompletableFuture<U> applyToEitherAsync(
      CompletionStage<? extends T> other, Function<? super T, U> action, Executor executor) {
    return super.applyToEitherAsync(other, action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<Void> acceptEither(
      CompletionStage<? extends T> other, Consumer<? super T> action) {
    return super.acceptEither(other, context.wrapConsumer(action::accept));
  }

  @Override
  public CompletableFuture<Void> acceptEitherAsync(
      CompletionStage<? extends T> other, Consumer<? super T> action, Executor executor) {
    return super.acceptEitherAsync(other, action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<Void> runAfterEither(CompletionStage<?> other, Runnable action) {
    return super.runAfterEither(other, context.wrap(action));
  }

  @Override
  public CompletableFuture<Void> runAfterEitherAsync(
      CompletionStage<?> other, Runnable action, Executor executor) {
    return super.runAfterEitherAsync(other, action, context.wrap(executor));
  }

  @Override
  public <U> CompletableFuture<U> thenCompose(
      Function<? super T, ? extends CompletionStage<U>> action) {
    return super.thenCompose(context.wrapFunction(action::apply));
  }

  @Override
  public <U> CompletableFuture<U> thenComposeAsync(
      Function<? super T, ? extends CompletionStage<U>> action, Executor executor) {
    return super.thenComposeAsync(action, context.wrap(executor));
  }

  @Override
  public <U> CompletableFuture<U> handle(
      BiFunction<? super T, @Nullable Throwable, ? extends U> action) {
    return super.handle(context.wrapFunction(action::apply));
  }

  @Override
  public <U> CompletableFuture<U> handleAsync(
      BiFunction<? super T, @Nullable Throwable, ? extends U> action, Executor executor) {
    return super.handleAsync(action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<T> whenComplete(BiConsumer<? super T, ? super Throwable> action) {
    return super.whenComplete(context.wrapConsumer(action::accept));
  }

  @Override
  public CompletableFuture<T> whenCompleteAsync(
      BiConsumer<? super T, ? super Throwable> action, Executor executor) {
    return super.whenCompleteAsync(action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<T> exceptionally(Function<Throwable, ? extends T> action) {
    return super.exceptionally(context.wrapFunction(action::apply));
  }

  @Override
  public CompletableFuture<T> exceptionallyAsync(
      Function<Throwable, ? extends T> action, Executor executor) {
    return super.exceptionallyAsync(action, context.wrap(executor));
  }

  @Override
  public CompletableFuture<T> exceptionallyCompose(
      Function<Throwable, ? extends CompletionStage<T>> action) {
    return super.exceptionallyCompose(context.wrapFunction(action::apply));
  }

  @Override
  public CompletableFuture<T> exceptionallyComposeAsync(
      Function<Throwable, ? extends CompletionStage<T>> action, Executor executor) {
    return super.exceptionallyComposeAsync(action, context.wrap(executor));
  }
}
