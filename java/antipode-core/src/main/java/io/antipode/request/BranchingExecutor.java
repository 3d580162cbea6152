package io.antipode.request;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** An executor whose tasks are branches of the request that they were given in. */
final class BranchingExecutor implements ExecutorService {
  private final ExecutorService executor;

  BranchingExecutor(ExecutorService executor) {
    this.executor = executor;
  }

  @Override
  public void execute(Runnable task) {
    executor.execute(Branches.decorate(task));
  }

  @Override
  public Future<?> submit(Runnable task) {
    return executor.submit(Branches.branch(task));
  }

  @Override
  public <T> Future<T> submit(Runnable task, T result) {
    return executor.submit(Branches.branch(task), result);
  }

  @Override
  public <T> Future<T> submit(Callable<T> task) {
    return executor.submit(Branches.branch(task));
  }

  @Override
  public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks)
      throws InterruptedException {
    return executor.invokeAll(branches(tasks));
  }

  @Override
  public <T> List<Future<T>> invokeAll(
      Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
      throws InterruptedException {
    return executor.invokeAll(branches(tasks), timeout, unit);
  }

  @Override
  public <T> T invokeAny(Collection<? extends Callable<T>> tasks)
      throws InterruptedException, ExecutionException {
    return executor.invokeAny(branches(tasks));
  }

  @Override
  public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
      throws InterruptedException, ExecutionException, TimeoutException {
    return executor.invokeAny(branches(tasks), timeout, unit);
  }

  private static <T> List<Callable<T>> branches(Collection<? extends Callable<T>> tasks) {
    List<Callable<T>> branches = new ArrayList<>();
    tasks.forEach(task -> branches.add(Branches.branch(task)));
    return branches;
  }

  @Override
  public void shutdown() {
    executor.shutdown();
  }

  @Override
  public List<Runnable> shutdownNow() {
    return executor.shutdownNow();
  }

  @Override
  public boolean isShutdown() {
    return executor.isShutdown();
  }

  @Override
  public boolean isTerminated() {
    return executor.isTerminated();
  }

  @Override
  public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
    return executor.awaitTermination(timeout, unit);
  }
}
