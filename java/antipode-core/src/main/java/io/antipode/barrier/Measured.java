package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.runtime.Measures;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Reports how barriers, checks and held reads ended to whoever measures them. */
final class Measured {
  private Measured() {}

  /** Returns what a call returns, or throws what it throws. */
  static BarrierResult call(String operation, Supplier<BarrierResult> call) {
    long begun = System.nanoTime();
    try {
      BarrierResult result = call.get();
      ended(operation, begun, result, null);
      return result;
    } catch (RuntimeException | Error error) {
      ended(operation, begun, null, error);
      throw error;
    }
  }

  /** Returns the very future that a call returns, so that whoever cancels it cancels the call. */
  static CompletableFuture<BarrierResult> future(
      String operation, Supplier<CompletableFuture<BarrierResult>> call) {
    long begun = System.nanoTime();
    try {
      CompletableFuture<BarrierResult> future = call.get();
      CompletableFuture<BarrierResult> unused =
          future.whenComplete((result, error) -> ended(operation, begun, result, error));
      return future;
    } catch (RuntimeException | Error error) {
      ended(operation, begun, null, error);
      throw error;
    }
  }

  private static void ended(
      String operation, long begun, @Nullable BarrierResult returned, @Nullable Throwable error) {
    if (Measures.isIdle()) {
      return;
    }
    Duration took = Duration.ofNanos(System.nanoTime() - begun);
    UnmetException unmet = error instanceof UnmetException thrown ? thrown : null;
    BarrierResult result = unmet == null ? returned : unmet.result();
    if (result != null && unmet == null) {
      unmet = UnmetException.of(result);
    }
    boolean isCancelled = error instanceof CancellationException;
    String thrown = error == null || isCancelled ? "" : name(error);
    String status = isCancelled ? "cancelled" : unmet != null ? unmet.code() : thrown;
    Measures.tell(
        measure -> measure.ended(operation, status.isEmpty() ? "ok" : status, thrown, took));
    if (unmet != null) {
      unmet(operation, unmet.result());
    }
    if (result != null && !operation.equals("check")) {
      waited(result, "now");
    }
  }

  private static String name(Throwable error) {
    return error instanceof AntipodeException ours ? ours.code() : error.getClass().getSimpleName();
  }

  /** Reports what an operation did not get. */
  static void unmet(String operation, BarrierResult result) {
    for (Outcome outcome : result.unmet()) {
      Measures.tell(
          measure ->
              measure.unmet(
                  operation, outcome.dependency().datastore(), outcome.status().toString()));
    }
  }

  /** A wait and whether what was waited for is there. */
  private record Slowest(boolean isMet, Duration waited, Status status) {
    boolean isBefore(Slowest other) {
      return isMet == other.isMet ? waited.compareTo(other.waited) < 0 : isMet;
    }
  }

  /** Reports how long each datastore kept a result waiting, where it did. */
  static void waited(BarrierResult result, String at) {
    if (Measures.isIdle() || result.waited().compareTo(Measures.LEAST_WAIT) < 0) {
      return;
    }
    Map<String, Slowest> all = new HashMap<>();
    for (Outcome outcome : result.outcomes()) {
      Duration waited = outcome.status().isPending() ? result.waited() : outcome.waited();
      if (waited.compareTo(Measures.LEAST_WAIT) >= 0) {
        all.merge(
            outcome.dependency().datastore(),
            new Slowest(outcome.isMet(), waited, outcome.status()),
            (held, found) -> held.isBefore(found) ? found : held);
      }
    }
    all.forEach(
        (datastore, slowest) ->
            Measures.tell(
                measure ->
                    measure.waited(datastore, slowest.status.toString(), at, slowest.waited)));
  }
}
