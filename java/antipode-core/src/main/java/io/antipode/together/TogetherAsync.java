package io.antipode.together;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/**
 * Calls of several requests that run as one, as {@link Together}, of work that returns a future.
 *
 * @param <I> an item of a call
 * @param <R> the result for an item
 */
public final class TogetherAsync<I, R> {
  private final Work<I, R> work;

  private TogetherAsync(Work<I, R> work) {
    this.work = work;
  }

  /**
   * Returns calls of work whose results come later. What it goes on with in other threads is in its
   * scope where the context goes there, as for all work of a request.
   *
   * @param work takes the items of the callers, in the order of their calls, equal ones too, and
   *     returns a result for each, in their order
   */
  public static <I, R> TogetherAsync<I, R> of(
      Function<List<I>, CompletionStage<? extends List<? extends R>>> work) {
    return new TogetherAsync<>(new Work<>(work, any -> ""));
  }

  /**
   * Returns the same work, whose calls run together where this is equal, such as of one tenant.
   *
   * @param key of an item
   */
  public TogetherAsync<I, R> keyed(Function<? super I, ?> key) {
    return new TogetherAsync<>(work.keyed(key));
  }

  /**
   * Returns the result for an item, of a run for this and for all calls that wait by then. The work
   * is called in this thread, or in that which completes the run before.
   *
   * @return completed once the caller's scope depends on what was added; where it is cancelled,
   *     nobody runs for it any more
   */
  public CompletableFuture<R> call(I item) {
    Asked<I, R> asked = new Asked<>(item);
    if (work.isWithin(asked)) { // Within a run, for which it must not wait.
      go(List.of(asked), () -> {});
      return asked.answer;
    }
    Object group = work.group(asked);
    if (!work.waits(group, asked)) {
      drive(group, List.of(asked));
    }
    return asked.answer;
  }

  /** Runs calls, and then those that came meanwhile; in a loop while each is over at once. */
  private void drive(Object group, List<Asked<I, R>> first) {
    List<Asked<I, R>> calls = first;
    boolean isOver = true;
    while (isOver && !calls.isEmpty()) {
      AtomicBoolean isFirst = new AtomicBoolean(true);
      go(
          calls,
          () -> {
            if (!isFirst.getAndSet(false)) {
              drive(group, next(group));
            }
          });
      isOver = !isFirst.getAndSet(false);
      calls = isOver ? next(group) : List.of();
    }
  }

  /** Returns those who came meanwhile. */
  private List<Asked<I, R>> next(Object group) {
    Asked<I, R> first = work.first(group);
    if (first == null) {
      return List.of();
    }
    List<Asked<I, R>> calls = new ArrayList<>(List.of(first));
    calls.addAll(work.take(group));
    return calls;
  }

  private void go(List<Asked<I, R>> calls, Runnable then) {
    new Run<>(calls).go(work, calls.get(0).context, then);
  }
}
