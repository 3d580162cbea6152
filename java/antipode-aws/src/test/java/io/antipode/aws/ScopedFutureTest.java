package io.antipode.aws;

import static org.assertj.core.api.Assertions.assertThat;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** What depends on the future of a call runs in the context in which the call was made. */
class ScopedFutureTest {
  private static final ContextKey<String> REQUEST = ContextKey.named("request");

  /** An executor of the application's, whose threads have no context. */
  private static final Executor OWN = task -> new Thread(task).start();

  private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();

  /** How a stage is made of another, with what it does. */
  interface Way extends BiFunction<CompletableFuture<Integer>, Runnable, CompletableFuture<?>> {}

  private static Map<String, Way> whereItSucceeds() {
    CompletableFuture<Integer> done = CompletableFuture.completedFuture(1);
    CompletableFuture<Integer> never = new CompletableFuture<>();
    return Map.ofEntries(
        Map.entry("thenApply", (from, act) -> from.thenApply(found -> did(act))),
        Map.entry("thenApplyAsync", (from, act) -> from.thenApplyAsync(found -> did(act))),
        Map.entry("own", (from, act) -> from.thenApplyAsync(found -> did(act), OWN)),
        Map.entry("thenAccept", (from, act) -> from.thenAccept(found -> act.run())),
        Map.entry("thenRun", CompletableFuture::thenRun),
        Map.entry("thenCombine", (from, act) -> from.thenCombine(done, (a, b) -> did(act))),
        Map.entry("thenAcceptBoth", (from, act) -> from.thenAcceptBoth(done, (a, b) -> act.run())),
        Map.entry("runAfterBoth", (from, act) -> from.runAfterBoth(done, act)),
        Map.entry("applyToEither", (from, act) -> from.applyToEither(never, found -> did(act))),
        Map.entry("acceptEither", (from, act) -> from.acceptEither(never, found -> act.run())),
        Map.entry("runAfterEither", (from, act) -> from.runAfterEither(never, act)),
        Map.entry("thenCompose", (from, act) -> from.thenCompose(found -> after(act))),
        Map.entry("composeOwn", (from, act) -> from.thenComposeAsync(found -> after(act), OWN)),
        Map.entry("handle", (from, act) -> from.handle((found, error) -> did(act))),
        Map.entry("handleOwn", (from, act) -> from.handleAsync((found, error) -> did(act), OWN)),
        Map.entry("whenComplete", (from, act) -> from.whenComplete((found, error) -> act.run())));
  }

  private static Map<String, Way> whereItFails() {
    return Map.of(
        "exceptionally", (from, act) -> from.exceptionally(error -> did(act)),
        "exceptionallyAsync", (from, act) -> from.exceptionallyAsync(error -> did(act)),
        "exceptionallyCompose", (from, act) -> from.exceptionallyCompose(error -> after(act)),
        "handle", (from, act) -> from.handle((found, error) -> did(act)));
  }

  private static int did(Runnable act) {
    act.run();
    return 1;
  }

  private static CompletableFuture<Integer> after(Runnable act) {
    return CompletableFuture.completedFuture(did(act));
  }

  /** Returns the future of a call that was made in a request, and succeeded. */
  private static CompletableFuture<Integer> called() {
    try (Scope request = Context.current().with(REQUEST, "mine").makeCurrent()) {
      ScopedFuture<Integer> made = ScopedFuture.inCurrent();
      made.ends(1, null);
      return made;
    }
  }

  private void act() {
    seen.add(String.valueOf(Context.current().get(REQUEST)));
  }

  /** Returns the ways that left the request, after a future that somebody else completes. */
  private List<String> left(
      Map<String, Way> ways, Consumer<CompletableFuture<Integer>> completing) {
    List<String> found = new ArrayList<>();
    ways.forEach(
        (name, way) -> {
          seen.clear();
          CompletableFuture<Integer> others = new CompletableFuture<>();
          CompletableFuture<?> stage = way.apply(called().thenCompose(reply -> others), this::act);
          completing.accept(others);
          Object unused = stage.join();
          if (!List.copyOf(seen).equals(List.of("mine"))) {
            found.add(name + " " + seen);
          }
        });
    return found;
  }

  @Test
  void whoeverCompletesIt() {
    assertThat(left(whereItSucceeds(), others -> others.complete(1))).isEmpty();
  }

  @Test
  void whoeverFailsIt() {
    IllegalStateException error = new IllegalStateException("somebody else's");
    assertThat(left(whereItFails(), others -> others.completeExceptionally(error))).isEmpty();
  }

  /** The JDK ends it in a thread of its own. */
  @Test
  void whatIsNotWaitedForAnyLonger() {
    Object unused =
        called()
            .thenCompose(reply -> new CompletableFuture<Integer>())
            .orTimeout(1, TimeUnit.MILLISECONDS)
            .exceptionally(error -> did(this::act))
            .join();
    assertThat(seen).containsExactly("mine");
  }
}
