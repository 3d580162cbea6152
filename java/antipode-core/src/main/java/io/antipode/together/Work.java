package io.antipode.together;

import io.antipode.request.ScopeBlock;
import io.antipode.request.SharedScope;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The application's work, and the calls that wait for its next run. Thread-safe. */
final class Work<I, R> {
  private static final ContextKey<Set<Object>> RUNNING = ContextKey.named("antipode-together");

  private final Function<List<I>, CompletionStage<? extends List<? extends R>>> function;
  private final Function<? super I, ?> key;

  /** By group, which is there while it runs. */
  private final Map<Object, List<Asked<I, R>>> waiting = new HashMap<>();

  Work(
      Function<List<I>, CompletionStage<? extends List<? extends R>>> function,
      Function<? super I, ?> key) {
    this.function = Objects.requireNonNull(function, "work");
    this.key = Objects.requireNonNull(key, "key");
  }

  Work<I, R> keyed(Function<? super I, ?> other) {
    return new Work<>(function, other);
  }

  /** Returns what calls have in common that run together: who waits for itself runs with itself. */
  Object group(Asked<I, R> asked) {
    return Arrays.asList(key.apply(asked.item), asked.caller.own());
  }

  /** Returns whether a call is made within a run of this, for which it must not wait. */
  boolean isWithin(Asked<I, R> asked) {
    Set<Object> running = asked.context.get(RUNNING);
    return running != null && running.contains(this);
  }

  /** Has a call wait for the next run; returns false where nothing runs, and it is to run. */
  synchronized boolean waits(Object group, Asked<I, R> asked) {
    List<Asked<I, R>> others = waiting.get(group);
    if (others == null) {
      waiting.put(group, new ArrayList<>());
      return false;
    }
    return others.add(asked);
  }

  /** Returns the calls that wait, which are to run; where nobody waits any more, its end. */
  synchronized List<Asked<I, R>> take(Object group) {
    List<Asked<I, R>> calls = new ArrayList<>(waiting.getOrDefault(group, List.of()));
    calls.removeIf(Asked::isOver);
    waiting.put(group, new ArrayList<>());
    return calls;
  }

  /** Returns the first call that waits, and takes it; null, and nothing runs, where none does. */
  synchronized @Nullable Asked<I, R> first(Object group) {
    List<Asked<I, R>> calls = waiting.getOrDefault(group, new ArrayList<>());
    calls.removeIf(Asked::isOver);
    if (calls.isEmpty()) {
      waiting.remove(group);
      return null;
    }
    return calls.remove(0);
  }

  /** Returns what the application's work returns, called in the scope of a run. */
  CompletionStage<? extends List<? extends R>> begin(
      Run<I, R> run, SharedScope scope, Context context) {
    Set<Object> running = context.get(RUNNING);
    Set<Object> more = running == null ? new HashSet<>() : new HashSet<>(running);
    more.add(this);
    try (ScopeBlock entered = scope.enter(context.with(RUNNING, more))) {
      return Objects.requireNonNull(function.apply(run.items()), "the work returned null");
    } catch (Throwable error) { // It is the callers', whatever it is.
      return CompletableFuture.failedStage(error);
    }
  }
}
