package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.Antipode;
import io.antipode.AntipodeException;
import io.antipode.Mode;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.FakeStore;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Outcome;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shims;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnmetException;
import io.antipode.barrier.VirtualClock;
import io.antipode.barrier.VirtualRead;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** Scripts of level 4: barriers over stores that follow a script, on a virtual clock. */
final class Scripts {
  /** The virtual hour in which every script starts; it is part of the vectors' format. */
  private static final long HOUR = 500_000;

  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final VirtualClock clock = new VirtualClock(HOUR);
  private final List<FakeStore> stores = new ArrayList<>();
  private final List<Started> barriers = new ArrayList<>();
  private final List<VirtualRead> reads = new ArrayList<>();

  private Scripts() {}

  /** Runs a script to its end; returns what came of it. */
  static ObjectNode run(JsonNode script) {
    Settings before =
        Settings.configure(held -> Configuration.changed(held, script.path("settings")));
    Scripts running = new Scripts();
    try {
      script.path("stores").forEach(running::register);
      if (!script.hasNonNull("scope")) {
        running.play(script);
        return running.value(null);
      }
      try (ScopeBlock block = Antipode.scope(Values.lineage(script.get("scope")))) {
        return script.hasNonNull("fulfils") ? running.branch(script) : running.inScope(script);
      }
    } finally {
      running.close();
      Settings.configure(held -> before);
    }
  }

  private ObjectNode branch(JsonNode script) {
    try (ScopeBlock block = Antipode.fulfilling(Values.promise(script.get("fulfils")))) {
      return inScope(script);
    }
  }

  private ObjectNode inScope(JsonNode script) {
    Scope scope = Objects.requireNonNull(Scope.currentOrNull());
    if (script.has("stop_at_s")) {
      clock.at(nanos(script.get("stop_at_s")), scope::stop);
    }
    play(script);
    return value(scope);
  }

  private void play(JsonNode script) {
    script.path("barriers").forEach(each -> barriers.add(new Started(each)));
    script.path("reads").forEach(each -> read(each, script.path("stores")));
    clock.run();
  }

  private void close() {
    for (FakeStore store : stores) {
      store.close();
      if (store.open() != 0) {
        throw new IllegalStateException(
            store.open() + " connections to " + store.datastore() + " are open");
      }
    }
  }

  private static <E extends Enum<E>> E word(Class<E> type, JsonNode word) {
    return Enum.valueOf(type, word.asText().toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  private static Duration duration(JsonNode seconds) {
    return Duration.ofNanos(nanos(seconds));
  }

  private static long nanos(JsonNode seconds) {
    return Math.round(seconds.asDouble() * 1e9);
  }

  // Stores.

  private void register(JsonNode found) {
    FakeStore store = store(found, clock);
    stores.add(store);
    found.path("script").forEach(event -> script(store, event));
    Shims.register(store);
  }

  /** Returns a store, without what it is scripted to do. */
  static FakeStore store(JsonNode found, VirtualClock clock) {
    FakeStore.Traits traits =
        new FakeStore.Traits(
            found.path("reads_from").asText().equals("replica")
                ? ReadsFrom.REPLICA
                : ReadsFrom.PRIMARY,
            found.path("waitable").asBoolean(true),
            found.path("floors").asBoolean(),
            found.path("polls").asBoolean(true),
            found.path("pinned").asBoolean(),
            found.path("push").asBoolean(),
            found.path("blocks").asBoolean(),
            found.path("promises").asBoolean(),
            found.path("unique_logs").asBoolean(),
            found.path("fences").asBoolean(),
            duration(found.path("fence_s")));
    return new FakeStore(Values.text(found, "datastore"), clock, traits);
  }

  private static void script(FakeStore store, JsonNode event) {
    long at = nanos(event.path("at_s"));
    if (event.has("log")) {
      String position = Values.text(event, "position");
      store.advance(at, Values.text(event, "log"), Long.parseUnsignedLong(position));
    } else if (event.has("status")) {
      store.status(at, Values.write(event.get("write")), word(Status.class, event.get("status")));
    } else if (event.has("record")) {
      store.record(
          at, Values.promise(event.get("promise")), recorded(Values.text(event, "record")));
    } else if (event.has("server")) {
      store.replace(at, Values.text(event, "server"));
    } else if (event.has("records_server")) {
      store.moveRecords(at, Values.text(event, "records_server"));
    } else if (event.has("down_until_s")) {
      store.takeDown(at, nanos(event.get("down_until_s")));
    } else if (event.has("down")) {
      store.takeDown(at, null);
    } else if (event.has("broken")) {
      store.breakDown(at);
    } else if (event.has("frozen")) {
      store.freeze(at);
    } else if (event.has("eta_s")) {
      store.estimate(at, duration(event.get("eta_s")));
    } else if (event.has("primary")) {
      store.movePrimary(at, Values.write(event.get("primary")));
    } else if (event.has("primary_down")) {
      store.takePrimaryDown(at);
    } else {
      throw AgentException.senseless("no event of a script: " + event);
    }
  }

  private static Status recorded(String record) {
    return switch (record) {
      case "fulfilled" -> Status.VISIBLE;
      case "abandoned" -> Status.ABANDONED;
      default -> Status.NOT_YET;
    };
  }

  /** A read of the datastore's client, by a connection to the server of its own script. */
  private void read(JsonNode found, JsonNode scripts) {
    String datastore = Values.text(found, "datastore");
    int nth = 0;
    while (!stores.get(nth).datastore().equals(datastore)) {
      nth++;
    }
    FakeStore connection = FakeStore.plain(datastore, clock);
    JsonNode events = found.get("connection");
    (events == null ? scripts.path(nth).path("script") : events)
        .forEach(event -> script(connection, event));
    VirtualRead read = new VirtualRead(clock, stores.get(nth), connection, readOptions(found));
    reads.add(read);
    clock.at(nanos(found.path("at_s")), () -> start(read, found));
  }

  private static VirtualRead.Options readOptions(JsonNode found) {
    Set<WriteId> snapshot = found.has("snapshot") ? new HashSet<>() : null;
    if (snapshot != null) {
      found.path("snapshot").forEach(write -> snapshot.add(Values.write(write)));
    }
    return new VirtualRead.Options(
        found.path("watched").asBoolean(),
        snapshot,
        Duration.ofNanos(nanos(found.path("proof_s"))),
        found.path("unasked").asBoolean(),
        found.path("refused").asBoolean());
  }

  private static void start(VirtualRead read, JsonNode found) {
    found.path("wrote").forEach(write -> Antipode.append(Values.write(write)));
    if (found.has("merges")) {
      Objects.requireNonNull(Scope.currentOrNull()).merge(Values.lineage(found.path("merges")));
    }
    if (!found.path("barriers").asText().equals("explicit")) {
      read.start();
      return;
    }
    try (io.opentelemetry.context.Scope block = Barriers.explicit()) {
      read.start();
    }
  }

  // Barriers.

  /** A barrier of the script. */
  private final class Started {
    private final JsonNode given;
    private @Nullable CompletableFuture<BarrierResult> result;
    private @Nullable Throwable error;
    private long finished = -1;

    Started(JsonNode given) {
      this.given = given;
      clock.at(nanos(given.path("at_s")), this::start);
      if (given.hasNonNull("cancel_at_s")) {
        clock.at(nanos(given.get("cancel_at_s")), this::cancel);
      }
    }

    private void start() {
      try {
        BarrierOptions options = options(given).withClock(clock);
        CompletableFuture<BarrierResult> started =
            given.path("check").asBoolean()
                ? Barriers.checkAsync(options)
                : Barriers.barrierAsync(options);
        result = started;
        CompletableFuture<BarrierResult> unused =
            started.whenComplete(
                (value, raised) -> {
                  error = raised;
                  finished = clock.nanoTime();
                });
      } catch (AntipodeException raised) {
        error = raised;
        finished = clock.nanoTime();
      }
    }

    private void cancel() {
      if (result != null) {
        result.cancel(false);
      }
    }

    ObjectNode value() {
      ObjectNode value = JSON.objectNode();
      Throwable raised = error instanceof CompletionException wrapped ? wrapped.getCause() : error;
      @Nullable BarrierResult ended = null;
      if (raised == null && result != null) {
        ended = result.join();
      } else if (raised instanceof UnmetException unmet) {
        ended = unmet.result();
      }
      value.put("code", code(raised));
      value.put("finished_s", finished / 1e9);
      value.putNull("ok").putNull("eta_s");
      value.putArray("outcomes");
      value.putArray("incomplete");
      return ended == null ? value : value.setAll(Values.json(ended));
    }
  }

  private static @Nullable String code(@Nullable Throwable error) {
    if (error == null) {
      return null;
    }
    if (error instanceof CancellationException) {
      return "cancelled";
    }
    return error instanceof AntipodeException ours ? ours.code() : "store";
  }

  private static BarrierOptions options(JsonNode given) {
    BarrierOptions options = BarrierOptions.timeout(duration(given.path("timeout_s")));
    JsonNode lineage = given.path("lineage");
    if (lineage.isTextual()) {
      options = options.withLineage(lineage.textValue());
    } else if (lineage.isObject()) {
      options = options.withLineage(Values.lineage(lineage));
    }
    if (!given.path("refresh").asBoolean(true)) {
      options = options.withoutRefresh();
    }
    return withOptions(options, given.path("options"));
  }

  /** Returns options with those that are spelled as in the specification. */
  static BarrierOptions withOptions(BarrierOptions held, JsonNode given) {
    BarrierOptions options = held;
    if (given.hasNonNull("only")) {
      options = options.withOnly(Values.texts(given.get("only")));
    }
    if (given.hasNonNull("exclude")) {
      options = options.withExclude(Values.texts(given.get("exclude")));
    }
    if (given.path("at").asText().equals("read")) {
      options = options.atRead();
    }
    if (given.path("on_unmet").asText().equals("return")) {
      options = options.returningUnmet();
    }
    if (given.hasNonNull("on_unknown")) {
      options = options.withOnUnknown(word(Policy.class, given.get("on_unknown")));
    }
    if (given.hasNonNull("on_incomplete")) {
      options = options.withOnIncomplete(word(Policy.class, given.get("on_incomplete")));
    }
    if (given.hasNonNull("mode")) {
      options = options.withMode(word(Mode.class, given.get("mode")));
    }
    return options;
  }

  // What came of it.

  private ObjectNode value(@Nullable Scope scope) {
    ObjectNode value = JSON.objectNode();
    ArrayNode ended = value.putArray("barriers");
    barriers.forEach(each -> ended.add(each.value()));
    ArrayNode answered = value.putArray("reads");
    reads.forEach(each -> answered.add(answered(each)));
    ArrayNode looks = value.putArray("looks");
    ArrayNode fences = value.putArray("fences");
    ObjectNode floors = JSON.objectNode();
    ObjectNode promises = JSON.objectNode();
    for (FakeStore store : stores) {
      looks.add(store.polls());
      fences.add(store.fences());
      Floor floor = scope == null ? null : store.floor(scope);
      if (floor != null) {
        ArrayNode writes = floors.putArray(store.datastore());
        for (WriteId write : floor.writes()) {
          writes.add(Values.json(write));
        }
        ArrayNode promised = promises.putArray(store.datastore());
        for (Promise promise : floor.promises()) {
          promised.add(Values.json(promise));
        }
      }
    }
    if (scope == null) {
      value.putNull("scope").putNull("floors").putNull("promises");
    } else {
      value.set("scope", Values.json(scope.lineage()));
      value.set("floors", floors);
      value.set("promises", promises);
    }
    return value;
  }

  private static ObjectNode answered(VirtualRead read) {
    ObjectNode value = JSON.objectNode();
    value.put("code", code(read.error()));
    ArrayNode outcomes = value.putArray("outcomes");
    if (read.error() instanceof UnmetException unmet) {
      for (Outcome outcome : unmet.result().outcomes()) {
        outcomes.add(Values.json(outcome));
      }
    }
    value.put("served", read.isServed());
    value.put("at_primary", read.error() instanceof UnmetException unmet && unmet.isForPrimary());
    return value.put("looks", read.polls()).put("finished_s", read.finished() / 1e9);
  }
}
