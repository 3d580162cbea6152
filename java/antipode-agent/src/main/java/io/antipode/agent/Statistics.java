package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.barrier.Shims;
import io.antipode.runtime.Counts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;

/** What the process counts and has open, since the present test began. Thread-safe. */
final class Statistics {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

  private volatile Map<Counts.Metric, Long> counted = Map.of();

  /** Counts from zero again. */
  void reset() {
    counted = Counts.all();
  }

  /** Returns counts, threads that poll stores, and connections. */
  JsonNode now() throws IOException {
    ObjectNode value = JSON.objectNode();
    ArrayNode metrics = value.putArray("metrics");
    Counts.all()
        .forEach(
            (metric, number) -> {
              long count = number - counted.getOrDefault(metric, 0L);
              if (count > 0) {
                metrics.addArray().add(metric.name()).add(metric.datastore()).add(count);
              }
            });
    ArrayNode watchers = value.putArray("watchers");
    Shims.watchers().forEach(watchers::add);
    return value.put("connections", sockets());
  }

  /** A virtual machine opens and closes other descriptors as it likes. */
  private static long sockets() throws IOException {
    try (Stream<Path> descriptors = Files.list(DESCRIPTORS)) {
      return descriptors.filter(Statistics::isSocket).count();
    }
  }

  private static boolean isSocket(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().startsWith("socket:");
    } catch (IOException closed) {
      return false;
    }
  }
}
