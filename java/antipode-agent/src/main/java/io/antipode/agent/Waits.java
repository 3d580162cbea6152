package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.antipode.lineage.Lineage;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** The operations that wait. Thread-safe. */
final class Waits {
  private static final Duration ABANDONING = Duration.ofSeconds(5);

  /** A request that was taken and not answered yet. */
  private static final class Taken {
    private @Nullable Future<?> future;
    private boolean isCancelled;

    /** From now on it can be cancelled; at once where that was asked for already. */
    synchronized void runs(Future<?> future) {
      this.future = future;
      if (isCancelled) {
        future.cancel(false);
      }
    }

    /** Cancels it, now or as soon as it can be; returns whether it was still running. */
    synchronized boolean cancel() {
      isCancelled = true;
      return future == null || future.cancel(false);
    }
  }

  private final Map<Long, Taken> running = new ConcurrentHashMap<>();

  /** Says that a request was taken. */
  void began(long number) {
    running.put(number, new Taken());
  }

  /** Says that a request was answered. */
  void ended(long number) {
    running.remove(number);
  }

  /** A barrier, by any of the three ways to call it. */
  JsonNode barrier(JsonNode request) throws Exception {
    BarrierOptions options =
        given(
            request,
            BarrierOptions.timeout(
                Configuration.duration(Values.argument(request, "timeout_s").asDouble())));
    return switch (request.path("api").asText("sync")) {
      case "sync" -> Values.json(Barriers.barrier(options));
      case "async" -> Values.json(await(request, Barriers.barrierAsync(options)));
      case "callback" -> Values.json(calledBack(request, options));
      default -> throw AgentException.senseless("no such way to call a barrier");
    };
  }

  JsonNode check(JsonNode request) throws Exception {
    BarrierOptions options = given(request, BarrierOptions.check());
    if (!request.path("refresh").asBoolean(true)) {
      options = options.withoutRefresh();
    }
    return Values.json(
        request.path("api").asText().equals("async")
            ? await(request, Barriers.checkAsync(options))
            : Barriers.check(options));
  }

  /** Returns options as a request spells them. */
  private static BarrierOptions given(JsonNode request, BarrierOptions options) {
    BarrierOptions given = Scripts.withOptions(options, request);
    return request.hasNonNull("lineage")
        ? given.withLineage(Lineage.deserialize(Values.text(request, "lineage")))
        : given;
  }

  private BarrierResult calledBack(JsonNode request, BarrierOptions options) throws Exception {
    CompletableFuture<BarrierResult> called = new CompletableFuture<>();
    Future<BarrierResult> handle = Barriers.barrierCallback(called::complete, options);
    CompletableFuture<BarrierResult> unused =
        called.whenComplete((value, error) -> handle.cancel(false));
    return await(request, called);
  }

  /** Waits for what can be cancelled meanwhile. */
  <T> T await(JsonNode request, Future<T> future) throws Exception {
    Taken taken = running.get(request.path("id").asLong());
    if (taken != null) {
      taken.runs(future);
    }
    try {
      return future.get();
    } catch (ExecutionException error) {
      if (error.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw error;
    }
  }

  JsonNode cancel(JsonNode request) {
    Taken taken = running.get(Values.argument(request, "request").asLong());
    return BooleanNode.valueOf(taken != null && taken.cancel());
  }

  void cancelAll() {
    running.values().forEach(Taken::cancel);
  }

  JsonNode abandon(JsonNode request) throws Exception {
    JsonNode promise = Values.argument(request, "promise");
    return BooleanNode.valueOf(
        request.path("api").asText().equals("async")
            ? await(request, Barriers.abandonAsync(Values.promise(promise), ABANDONING))
            : Barriers.abandon(Values.promise(promise), ABANDONING));
  }
}
