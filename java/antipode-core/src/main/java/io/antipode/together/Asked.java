package io.antipode.together;

import io.antipode.lineage.Lineage;
import io.antipode.request.Caller;
import io.opentelemetry.context.Context;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One call: its item, who made it, and what came of it. */
final class Asked<I, R> {
  final I item;
  final Caller caller = Caller.current();
  final Context context = Context.current();

  /** Completed once the caller depends on what the work added. */
  final CompletableFuture<R> answer = new CompletableFuture<>();

  /** Completed with whether it is to run for those who wait; false once it has its answer. */
  final CompletableFuture<Boolean> turn = new CompletableFuture<>();

  Asked(I item) {
    this.item = item;
    var unused = answer.whenComplete((result, error) -> turn.complete(false));
  }

  void succeed(Lineage gained, @Nullable R result) {
    if (!isOver()) {
      caller.take(gained);
      answer.complete(result);
    }
  }

  void fail(Lineage gained, Throwable error) {
    if (!isOver()) {
      caller.take(gained);
      answer.completeExceptionally(error);
    }
  }

  /** Returns whether nobody waits for it any more. */
  boolean isOver() {
    return answer.isDone();
  }
}
