package io.antipode.together;

import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.IncompleteLineageException;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.request.Caller;
import io.antipode.request.SharedScope;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Calls that run as one, until each has its result or its error. Of one thread at a time. */
final class Run<I, R> {
  private List<Asked<I, R>> left;

  Run(List<Asked<I, R>> calls) {
    this.left = List.copyOf(calls);
  }

  /** Returns the items of those for whom it runs now. */
  List<I> items() {
    List<I> items = new ArrayList<>();
    left.forEach(each -> items.add(each.item));
    return Collections.unmodifiableList(items);
  }

  /** Runs until it is over, and then goes on. */
  void go(Work<I, R> work, Context context, Runnable then) {
    SharedScope scope = new SharedScope(left.stream().map(each -> each.caller).toList());
    work.begin(this, scope, context)
        .whenComplete(
            (results, error) -> {
              if (error == null) {
                succeeded(scope, results);
              } else if (failed(scope, error)) {
                go(work, context, then);
                return;
              }
              then.run();
            });
  }

  /** Each of those for whom it ran has a result. */
  private void succeeded(SharedScope scope, @Nullable List<? extends R> results) {
    Lineage gained = scope.end();
    if (results == null || results.size() != left.size()) {
      String found = results == null ? "no results" : results.size() + " results";
      String message = "the work returned " + found + " for " + left.size() + " items";
      left.forEach(each -> each.fail(gained, new IllegalStateException(message)));
      return;
    }
    for (int i = 0; i < results.size(); i++) {
      R result = results.get(i);
      if (result instanceof Throwable error) {
        left.get(i).fail(gained, error);
      } else {
        left.get(i).succeed(gained, result);
      }
    }
  }

  /** It threw; returns whether it is to run again, for those who did not bring about that. */
  private boolean failed(SharedScope scope, Throwable error) {
    boolean hasWritten = scope.hasWritten();
    Lineage gained = scope.end();
    UnmetException found = hasWritten ? null : unmetIn(error);
    List<Asked<I, R>> others = new ArrayList<>();
    if (found != null) {
      for (Asked<I, R> each : left) {
        UnmetException own = about(found, each.caller);
        if (own == null) {
          others.add(each);
        } else {
          each.fail(Lineage.empty(), own);
        }
      }
    }
    if (found == null || others.size() == left.size()) {
      left.forEach(each -> each.fail(gained, error));
      return false;
    }
    left = others.stream().filter(each -> !each.isOver()).toList();
    return !left.isEmpty();
  }

  /** Returns an error without what others brought; null where the caller did not bring it about. */
  private static @Nullable UnmetException about(UnmetException error, Caller caller) {
    Set<Object> names = caller.dependencies();
    Set<Incomplete> marks = caller.marks();
    BarrierResult result = error.result();
    Set<Incomplete> missing =
        result.incomplete().stream().filter(marks::contains).collect(Collectors.toSet());
    boolean isCause =
        error instanceof IncompleteLineageException
            ? !missing.isEmpty()
            : error.decisive().stream()
                .anyMatch(each -> names.contains(Caller.name(each.dependency())));
    if (!isCause) {
      return null;
    }
    return new BarrierResult(
            result.outcomes().stream()
                .filter(each -> names.contains(Caller.name(each.dependency())))
                .toList(),
            result.waited(),
            result.eta(),
            missing,
            result.isIncompleteOk())
        .error();
  }

  /** Returns the first error of a barrier or read in an error, and in what caused it. */
  private static @Nullable UnmetException unmetIn(Throwable error) {
    Set<Throwable> met = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Throwable each = error; each != null && met.add(each); each = each.getCause()) {
      if (each instanceof UnmetException unmet) {
        return unmet;
      }
    }
    return null;
  }
}
