package io.antipode.programs;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.programs.Calls.Left;
import io.antipode.programs.Calls.Made;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.exception.SdkException;

/**
 * Requests that are chains of futures: each call follows others by a way that is drawn, and some
 * fail or are given up. What was written is compared with what the other region shows.
 */
final class Chains implements AutoCloseable {
  private static final Duration SOON = Duration.ofSeconds(20);

  /** How late a future is given up, at most. */
  private static final int GIVEN_UP_MICROS = 8_000;

  /** Keys of what is written by one call after another, and of what is written meanwhile. */
  private static final List<String> KEYS = List.of("a", "b");

  private static final List<String> OTHERS = List.of("c", "d");

  private final Calls calls;
  private final Random random;
  private final Tally tally = new Tally();
  private final AtomicLong numbers = new AtomicLong();
  private final ExecutorService own = Executors.newFixedThreadPool(2);

  /** What the request has written for certain, by key. */
  private final Map<String, Left> written = new ConcurrentHashMap<>();

  private volatile boolean isGivenUp;

  /** A call that is not made so far. */
  private interface Step extends Supplier<CompletableFuture<Object>> {}

  Chains(Calls calls, Random random) {
    this.calls = calls;
    this.random = random;
  }

  Tally tally() {
    return tally;
  }

  /** Makes requests until there were so many steps. */
  void run(int most) throws Exception {
    while (tally.steps() < most) {
      tally.begins();
      written.clear();
      isGivenUp = false;
      request();
    }
  }

  private void request() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      CompletableFuture<Object> chain = writing(KEYS).get();
      for (int more = 1 + random.nextInt(7); more > 0; more--) {
        chain = followed(chain);
      }
      settle(chain);
      leave("at the end");
      if (!isGivenUp && !Antipode.current().incomplete().isEmpty()) {
        tally.alarm("marked " + Antipode.current().incomplete());
      }
    }
  }

  private static void settle(CompletableFuture<Object> chain) throws Exception {
    try {
      Object unused = chain.get(SOON.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      Throwable cause = error.getCause();
      if (!(cause instanceof SdkException
          || cause instanceof TimeoutException
          || cause instanceof CancellationException)) {
        throw error;
      }
    }
  }

  // Calls. What they are is drawn at once: they are made in any order.

  private Step writing(List<String> keys) {
    Random drawn = new Random(random.nextLong());
    return () -> sent(calls.write(drawn, keys, numbers.incrementAndGet()));
  }

  private Step calling() {
    Random drawn = new Random(random.nextLong());
    return random.nextInt(4) > 0 ? writing(KEYS) : () -> sent(calls.other(drawn, KEYS.get(0)));
  }

  private CompletableFuture<Object> sent(Made made) {
    tally.steps(made.name());
    return made.future()
        .handle(
            (reply, error) -> {
              if (error == null) {
                made.left().forEach(each -> written.put(each.key(), each));
                return reply;
              }
              tally.does("error");
              throw error instanceof RuntimeException thrown
                  ? thrown
                  : new IllegalStateException(error);
            });
  }

  /** A write that is cancelled, or no longer waited for, soon; nothing else has its key. */
  private Step givenUp() {
    Random drawn = new Random(random.nextLong());
    return () -> {
      isGivenUp = true;
      long number = numbers.incrementAndGet();
      Made made = calls.write(drawn, List.of("x" + number), number);
      tally.steps(made.name() + ", given up");
      long micros = drawn.nextInt(GIVEN_UP_MICROS);
      if (drawn.nextBoolean()) {
        CompletableFuture.delayedExecutor(micros, TimeUnit.MICROSECONDS)
            .execute(() -> made.future().cancel(true));
      }
      return made.future()
          .thenApply(reply -> (Object) reply)
          .orTimeout(micros, TimeUnit.MICROSECONDS)
          .exceptionally(error -> error);
    };
  }

  // Ways.

  /** Returns what the chain is with a call more, by one of the ways of applications. */
  private CompletableFuture<Object> followed(CompletableFuture<Object> chain) {
    Step next = calling();
    Step meanwhile = writing(OTHERS);
    Step lost = givenUp();
    return switch (random.nextInt(13)) {
      case 0 -> chain.thenCompose(reply -> next.get());
      case 1 -> chain.thenComposeAsync(reply -> next.get());
      case 2 -> chain.thenComposeAsync(reply -> next.get(), own);
      case 3 -> chain.handle(Chains::either).thenCompose(reply -> next.get());
      case 4 -> chain.exceptionallyCompose(error -> next.get());
      case 5 ->
          chain.thenCompose(
              reply -> next.get().thenCombine(meanwhile.get(), (one, other) -> other));
      case 6 ->
          chain.thenCompose(
              reply ->
                  CompletableFuture.allOf(next.get(), meanwhile.get())
                      .thenCompose(both -> writing(OTHERS).get()));
      case 7 -> chain.thenApplyAsync(reply -> next.get().join());
      case 8 -> chain.whenComplete((reply, error) -> tally.does("...")).thenApply(reply -> reply);
      case 9 -> chain.thenCompose(reply -> lost.get());
      case 10 -> chain.thenApplyAsync(this::left);
      case 11 ->
          chain
              .thenCompose(reply -> CompletableFuture.supplyAsync(() -> reply))
              .thenCompose(reply -> next.get());
      default -> chain.thenComposeAsync(this::readBack);
    };
  }

  private static Object either(@Nullable Object reply, @Nullable Throwable error) {
    return error == null ? String.valueOf(reply) : error;
  }

  // Judgements.

  private Object left(Object reply) {
    leave("in between");
    return reply;
  }

  /** Something leaves with the lineage, and whoever gets it waits for what is written by now. */
  private void leave(String when) {
    Map<String, Left> certain = Map.copyOf(written);
    Lineage lineage = Antipode.current();
    if (certain.isEmpty() || !lineage.incomplete().isEmpty()) {
      return;
    }
    tally.does("leaves");
    try {
      Barriers.barrier(BarrierOptions.timeout(SOON));
    } catch (UnmetException unmet) {
      tally.alarm("unmet " + when + ": " + unmet.getMessage());
      return;
    }
    tally.judges();
    for (Left each : certain.values()) {
      Long shown = calls.shown(each.key());
      if (!each.isShown(shown)) {
        tally.lost(when + ": " + shown + " instead of " + each);
      }
    }
  }

  /** A read at the other region, which a barrier holds back. */
  private CompletableFuture<Object> readBack(Object reply) {
    Left certain = written.values().stream().findAny().orElse(null);
    if (certain == null || !Antipode.current().incomplete().isEmpty()) {
      return CompletableFuture.completedFuture(reply);
    }
    tally.does("barrier");
    Barriers.barrier(BarrierOptions.timeout(SOON).atRead());
    return calls.read(certain.key()).thenApply(shown -> judged(certain, shown));
  }

  private Object judged(Left certain, @Nullable Long shown) {
    tally.judges();
    if (!certain.isShown(shown)) {
      tally.early(shown + " instead of " + certain);
    }
    return certain;
  }

  @Override
  public void close() {
    own.shutdown();
  }
}
