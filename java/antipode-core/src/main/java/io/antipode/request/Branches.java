package io.antipode.request;

import io.opentelemetry.context.Context;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.Supplier;

/** Tasks that run as branches of the request in which they were made. */
public final class Branches {
  private Branches() {}

  /**
   * Returns a task that runs in the current context, in whatever thread, and is open until it ends.
   */
  public static Runnable branch(Runnable task) {
    Context context = Context.current();
    Runnable wrapped = context.wrap(Objects.requireNonNull(task, "task"));
    OpenBranch branch = OpenBranch.of(context);
    return () -> {
      try {
        wrapped.run();
      } finally {
        branch.finish();
      }
    };
  }

  /** Returns a task that returns a value, likewise. */
  public static <T> Callable<T> branch(Callable<T> task) {
    Context context = Context.current();
    Callable<T> wrapped = context.wrap(Objects.requireNonNull(task, "task"));
    OpenBranch branch = OpenBranch.of(context);
    return () -> {
      try {
        return wrapped.call();
      } finally {
        branch.finish();
      }
    };
  }

  /** Returns a task that returns a value, likewise. */
  public static <T> Supplier<T> branchSupplier(Supplier<T> task) {
    Context context = Context.current();
    Supplier<T> wrapped = context.wrapSupplier(Objects.requireNonNull(task, "task"));
    OpenBranch branch = OpenBranch.of(context);
    return () -> {
      try {
        return wrapped.get();
      } finally {
        branch.finish();
      }
    };
  }

  /** Returns a task for an executor: one that completes itself is in the context, and no branch. */
  public static Runnable decorate(Runnable task) {
    boolean completesItself =
        task instanceof Future || task instanceof CompletableFuture.AsynchronousCompletionTask;
    return completesItself ? Context.current().wrap(task) : branch(task);
  }

  /** Returns an executor whose tasks are decorated. */
  public static ExecutorService branching(ExecutorService executor) {
    return new BranchingExecutor(Objects.requireNonNull(executor, "executor"));
  }
}
