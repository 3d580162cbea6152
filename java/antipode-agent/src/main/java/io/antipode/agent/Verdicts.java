package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.FakeStore;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Shims;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.VirtualClock;
import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/** Verdicts of level 3: what a dry run writes down of the steps of one request. */
final class Verdicts {
  private static final long HOUR = 500_000;
  private static final Duration TIMEOUT = Duration.ofSeconds(1);
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** Reads that miss what one expects them to see, as they are counted and as lints name them. */
  private static final Map<String, String> UNSEEN =
      Map.of("read_before_commit", "read-before-commit", "unscoped_read", "unscoped-read");

  private final Map<String, FakeStore> stores = new LinkedHashMap<>();
  private final Map<String, Object> connections = new HashMap<>();

  private Verdicts() {}

  /** Returns the reads that were judged, the guards that travel on, and what was unseen. */
  static ObjectNode judge(JsonNode given) throws IOException {
    Path folder = Files.createTempDirectory("antipode-dry-run");
    try {
      return judge(given, folder);
    } finally {
      for (Path file : files(folder)) {
        Files.delete(file);
      }
      Files.delete(folder);
    }
  }

  private static ObjectNode judge(JsonNode given, Path folder) throws IOException {
    Map<Counts.Metric, Long> counted = Counts.all();
    Settings before = Settings.configure(held -> settings(held, given, folder));
    ObjectNode value = JSON.objectNode();
    try {
      value.set("guards", new Verdicts().guards(given));
    } finally {
      Settings.configure(held -> before);
    }
    value.set("counted", countedSince(counted));
    List<JsonNode> records = records(folder);
    value.set("lints", lints(records));
    return value.set("reads", reads(records));
  }

  private static ArrayNode countedSince(Map<Counts.Metric, Long> before) {
    ArrayNode counted = JSON.arrayNode();
    Counts.all()
        .forEach(
            (metric, count) -> {
              long more = count - before.getOrDefault(metric, 0L);
              boolean isMeant =
                  UNSEEN.containsKey(metric.name()) || metric.name().equals("sent_before_commit");
              if (more > 0 && isMeant) {
                counted.addArray().add(metric.name()).add(metric.datastore()).add(more);
              }
            });
    return counted;
  }

  private static ArrayNode lints(List<JsonNode> records) {
    Set<JsonNode> lints = new LinkedHashSet<>();
    for (JsonNode record : records) {
      String lint = record.path("lint").asText();
      if (record.path("kind").asText().equals("lint") && UNSEEN.containsValue(lint)) {
        lints.add(JSON.arrayNode().add(lint).add(record.path("datastore").asText()));
      }
    }
    return JSON.arrayNode().addAll(lints);
  }

  private static Settings settings(Settings held, JsonNode given, Path folder) {
    String barriers = given.path("barriers").asText("explicit");
    return held.withEgress(given.has("egress") ? Values.texts(given.get("egress")) : null)
        .withMode(Mode.DRY_RUN)
        .withDryRunDir(folder)
        .withRegion(given.hasNonNull("region") ? given.get("region").asText() : null)
        .withBarriers(barriers.equals("auto") ? ReadBarriers.AUTO : ReadBarriers.EXPLICIT);
  }

  private ArrayNode guards(JsonNode given) {
    VirtualClock clock = new VirtualClock(HOUR);
    given.path("stores").forEach(each -> register(each, clock));
    try {
      if (!given.path("scope").asBoolean(true)) {
        given.path("steps").forEach(this::take);
        return JSON.arrayNode();
      }
      try (ScopeBlock block = Antipode.scope(lineage(given))) {
        given.path("steps").forEach(this::take);
        return guards(block.scope());
      }
    } finally {
      stores.values().forEach(FakeStore::close);
    }
  }

  private static Lineage lineage(JsonNode given) {
    return given.has("lineage") ? Values.lineage(given.get("lineage")) : Lineage.empty();
  }

  private void register(JsonNode given, VirtualClock clock) {
    FakeStore store = Scripts.store(given, clock);
    if (given.hasNonNull("barriers")) {
      boolean isAuto = given.get("barriers").asText().equals("auto");
      store.waitBy(isAuto ? ReadBarriers.AUTO : ReadBarriers.EXPLICIT);
    }
    stores.put(store.datastore(), store);
    Shims.register(store);
  }

  private void take(JsonNode step) {
    switch (step.path("op").asText()) {
      case "write" -> Recording.recordWrite(Values.write(step.get("write")));
      case "barrier" ->
          Barriers.barrier(
              Scripts.withOptions(BarrierOptions.timeout(TIMEOUT), step.path("options")));
      case "check" -> Barriers.check(BarrierOptions.check());
      case "wrote" -> Recording.recordUncommitted(Values.text(step, "datastore"), who(step), true);
      case "over" -> Recording.recordUncommitted(Values.text(step, "datastore"), who(step), false);
      case "stop" -> Antipode.stop();
      case "read" -> read(step);
      default -> throw AgentException.senseless("no step " + step.path("op"));
    }
  }

  /** Returns the connection that a step is made through; the same for each one without a name. */
  private Object who(JsonNode step) {
    return connections.computeIfAbsent(step.path("connection").asText(), name -> new Object());
  }

  private void read(JsonNode step) {
    FakeStore store = Objects.requireNonNull(stores.get(Values.text(step, "datastore")));
    String block = step.path("block").asText();
    if (block.isEmpty()) {
      Object unused = Floor.current(store, who(step), new StaleRead());
      return;
    }
    try (io.opentelemetry.context.Scope chosen =
        block.equals("auto") ? Barriers.auto() : Barriers.explicit()) {
      Object unused = Floor.current(store, who(step), new StaleRead());
    }
  }

  /** Returns the guards in the text with which a request is sent. */
  private static ArrayNode guards(Scope scope) {
    ArrayNode guards = JSON.arrayNode();
    Arrays.stream(scope.text().split("~", -1))
        .filter(item -> item.startsWith("0g"))
        .forEach(guards::add);
    return guards;
  }

  private static List<JsonNode> records(Path folder) throws IOException {
    List<JsonNode> records = new ArrayList<>();
    for (Path file : files(folder)) {
      for (String line : Files.readAllLines(file)) {
        records.add(MAPPER.readTree(line));
      }
    }
    return records;
  }

  private static ArrayNode reads(List<JsonNode> records) {
    ArrayNode reads = JSON.arrayNode();
    for (JsonNode record : records) {
      if (record.path("kind").asText().equals("read")) {
        reads.addObject().setAll(judged(record));
      }
    }
    return reads;
  }

  private static ObjectNode judged(JsonNode record) {
    ObjectNode read = JSON.objectNode();
    read.set("verdict", record.get("verdict"));
    ArrayNode writes = read.putArray("writes");
    for (JsonNode write : record.get("writes")) {
      writes.addArray().add(write.get("datastore")).add(write.get("log")).add(write.get("version"));
    }
    return read;
  }

  private static List<Path> files(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.toList();
    }
  }
}
