package io.antipode.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.antipode.testing.Finding.Site;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;

/** What the records of a dry run say of missing barriers: the specification's findings. */
final class Findings {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final List<JsonNode> writes = new ArrayList<>();
  private final List<JsonNode> reads = new ArrayList<>();

  private Findings() {}

  /** Returns the findings of the files in a folder, in the order of their ids. */
  static List<Finding> in(Path folder) throws IOException {
    Findings found = new Findings();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.sorted().toList()) {
        for (String line : Files.readAllLines(file)) {
          found.take(MAPPER.readTree(line));
        }
      }
    }
    return found.grouped();
  }

  private void take(JsonNode record) {
    if (record.path("kind").asText().equals("write")) {
      writes.add(record);
    } else if (record.path("verdict").asText().equals("unguarded")) {
      reads.add(record);
    }
  }

  private List<Finding> grouped() {
    Map<String, Finding> found = new TreeMap<>();
    for (JsonNode read : reads) {
      for (JsonNode missed : read.path("writes")) {
        Finding one =
            new Finding(
                read.path("datastore").asText(),
                site(read),
                writeOf(read, missed),
                read.path("reads").asInt(1),
                new TreeSet<>());
        if (read.has("test")) {
          one.tests().add(read.get("test").asText());
        }
        found.merge(one.id(), one, Findings::both);
      }
    }
    return List.copyOf(found.values());
  }

  private static Finding both(Finding held, Finding other) {
    held.tests().addAll(other.tests());
    return new Finding(
        held.datastore(), held.read(), held.write(), held.reads() + other.reads(), held.tests());
  }

  /** The one of the read's own request, then the latest that is not after it, then the latest. */
  private Site writeOf(JsonNode read, JsonNode missed) {
    double readAt = read.path("t").asDouble();
    return writes.stream()
        .filter(write -> write.path("write").equals(missed))
        .max(
            Comparator.comparing(
                    (JsonNode write) -> write.path("request").equals(read.path("request")))
                .thenComparing(write -> write.path("t").asDouble() <= readAt)
                .thenComparing(write -> write.path("t").asDouble()))
        .map(Findings::site)
        .orElse(Site.UNKNOWN);
  }

  private static Site site(JsonNode record) {
    JsonNode site = record.path("site");
    return new Site(
        site.path("file").asText(), site.path("line").asInt(), site.path("function").asText());
  }
}
