package io.antipode.together;

import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.context.Context;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** How values are kept with what they depend on. */
final class Keeping {
  private Keeping() {}

  /**
   * Returns a value with what was added by the work in whose scope this is called; null as it is.
   */
  static <V> @Nullable Kept<V> kept(@Nullable V value) {
    return value == null ? null : new Kept<>(value, Scope.ofKeptValue());
  }

  /** Returns the same of a value that comes later, in the scope that is current now. */
  static <V> CompletableFuture<@Nullable Kept<V>> kept(
      CompletionStage<? extends @Nullable V> value) {
    Context context = Context.current();
    return value
        .<@Nullable Kept<V>>thenApply(
            found -> {
              try (var current = context.makeCurrent()) {
                return kept(found);
              }
            })
        .toCompletableFuture();
  }

  /**
   * Returns what takes the place of a value, loaded for nobody: in a scope of its own that depends
   * on what the value depends on, so that it is no older. What is lost of that, or not met in time,
   * is left out, and the rest is loaded again.
   *
   * @param load called in that scope, perhaps twice
   */
  static <V> CompletableFuture<@Nullable Kept<V>> again(
      Lineage before, Supplier<CompletableFuture<@Nullable Kept<V>>> load) {
    Work<Boolean, @Nullable Kept<V>> work =
        new Work<>(
            asked ->
                load.get()
                    .<List<@Nullable Kept<V>>>thenApply(
                        made -> Collections.nCopies(asked.size(), made)),
            any -> "");
    Asked<Boolean, @Nullable Kept<V>> now = asked(Lineage.empty());
    new Run<>(List.of(asked(before), now)).go(work, Context.root(), () -> {});
    return now.answer;
  }

  private static <V> Asked<Boolean, @Nullable Kept<V>> asked(Lineage start) {
    Scope scope = Scope.startingFrom(start);
    try (ScopeBlock block = ScopeBlock.enter(scope, Context.root(), Scope::end)) {
      return new Asked<>(true);
    }
  }
}
