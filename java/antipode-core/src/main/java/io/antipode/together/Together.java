package io.antipode.together;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Calls of several requests that run as one: for a single flight, a lock against stampedes, a write
 * buffer.
 *
 * <pre>{@code
 * Together<String, Integer> stock = Together.of(skus -> database.stock(skus));
 * int left = stock.call("sku-7");
 * }</pre>
 *
 * <p>While the work runs, calls wait for the next run, which is for all of them: no call gets what
 * began before it was made. Each run has a scope of its own, which depends on what its callers
 * depend on. Each caller's scope then depends on what the work added, and on nothing of the others.
 *
 * <p>A read or barrier in the work that fails for want of what some callers depend on fails these,
 * each with what it brought itself, and the work runs again for the others, unless it has written.
 * Any other error is every caller's. A result that is a {@link Throwable} fails the caller of its
 * item alone. Thread-safe; {@link TogetherAsync} is for work that returns a future.
 *
 * @param <I> an item of a call
 * @param <R> the result for an item
 */
public final class Together<I, R> {
  private final Work<I, R> work;

  private Together(Work<I, R> work) {
    this.work = work;
  }

  /**
   * Returns calls of work that one of the calling threads runs, while the others wait.
   *
   * @param work takes the items of the callers, in the order of their calls, equal ones too, and
   *     returns a result for each, in their order
   */
  public static <I, R> Together<I, R> of(Function<List<I>, ? extends List<? extends R>> work) {
    Objects.requireNonNull(work, "work");
    return new Together<>(
        new Work<>(items -> CompletableFuture.completedStage(work.apply(items)), any -> ""));
  }

  /**
   * Returns the same work, whose calls run together where this is equal, such as of one tenant.
   *
   * @param key of an item
   */
  public Together<I, R> keyed(Function<? super I, ?> key) {
    return new Together<>(work.keyed(key));
  }

  /**
   * Returns the result for an item, of a run for this and for all calls that wait by then.
   *
   * @throws CancellationException if this thread is interrupted while it waits; it stays so
   */
  public R call(I item) {
    Asked<I, R> asked = new Asked<>(item);
    if (work.isWithin(asked)) {
      run(List.of(asked));
      return answer(asked);
    }
    Object group = work.group(asked);
    if (!work.waits(group, asked) || leads(group, asked)) {
      List<Asked<I, R>> calls = new ArrayList<>(List.of(asked));
      calls.addAll(work.take(group));
      try {
        run(calls);
      } finally {
        handOver(group);
      }
    }
    return answer(asked);
  }

  /** Waits; returns whether it is to run, for there is no answer yet. */
  private boolean leads(Object group, Asked<I, R> asked) {
    try {
      return asked.turn.get();
    } catch (ExecutionException error) {
      throw new IllegalStateException(error);
    } catch (InterruptedException interrupted) {
      asked.answer.cancel(false);
      if (!asked.turn.complete(false) && asked.turn.join()) {
        handOver(group);
      }
      Thread.currentThread().interrupt();
      throw new CancellationException("interrupted while work ran for others");
    }
  }

  private void handOver(Object group) {
    Asked<I, R> next = work.first(group);
    while (next != null && !next.turn.complete(true)) {
      next = work.first(group); // That thread was interrupted just now.
    }
  }

  private void run(List<Asked<I, R>> calls) {
    new Run<>(calls).go(work, calls.get(0).context, () -> {});
  }

  private static <R> R answer(Asked<?, R> asked) {
    try {
      return asked.answer.join();
    } catch (CompletionException failed) {
      @Nullable Throwable cause = failed.getCause();
      if (cause instanceof RuntimeException error) {
        throw error;
      } else if (cause instanceof Error error) {
        throw error;
      }
      throw failed;
    }
  }
}
