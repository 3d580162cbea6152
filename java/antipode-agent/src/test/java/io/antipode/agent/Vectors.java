package io.antipode.agent;

import static org.assertj.core.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DynamicTest;

/** Reads vectors where they lie, and makes a test of each. */
final class Vectors {
  static final Path FOLDER = Path.of(System.getProperty("antipode.conformance"));
  private static final String SCHEMAS = "schema";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Vectors() {}

  /** What holds of a vector. */
  @FunctionalInterface
  interface Check {
    /**
     * Fails where it does not hold.
     *
     * @param store what the vector's file is about; empty where that is no store
     */
    void accept(String store, JsonNode vector) throws IOException;
  }

  /**
   * Returns a test for each vector of all files under a folder. Whatever has no check is a test
   * that fails: a level, a kind of vectors, a file without any.
   *
   * @param checks by level, which is the folder of a file, and kind
   */
  static Stream<DynamicTest> tests(Path root, Map<String, Map<String, Check>> checks) {
    return files(root).stream()
        .flatMap(
            file -> {
              String level = root.relativize(file.getParent()).toString();
              return tests(level, file, checks.getOrDefault(level, Map.of())).stream();
            });
  }

  private static List<DynamicTest> tests(String level, Path file, Map<String, Check> checks) {
    JsonNode content = content(file);
    List<DynamicTest> tests = new ArrayList<>();
    for (Map.Entry<String, JsonNode> each : content.properties()) {
      if (each.getValue().isContainerNode()) {
        String name = level + "/" + file.getFileName() + "/" + each.getKey();
        Check check = checks.get(each.getKey());
        tests.addAll(tests(name, content.path("store").asText(), each.getValue(), check));
      }
    }
    if (tests.isEmpty()) {
      tests.add(red(level + "/" + file.getFileName(), "there is no vector in it"));
    }
    return tests;
  }

  private static List<DynamicTest> tests(
      String kind, String store, JsonNode vectors, @Nullable Check check) {
    if (check == null) {
      return List.of(red(kind, "nothing here checks this kind of vectors"));
    }
    List<DynamicTest> tests = new ArrayList<>();
    for (JsonNode vector : vectors) {
      String name = kind + ": " + (vector.isTextual() ? vector : vector.path("name")).asText();
      tests.add(DynamicTest.dynamicTest(name, () -> check.accept(store, vector)));
    }
    return tests;
  }

  private static DynamicTest red(String name, String reason) {
    return DynamicTest.dynamicTest(name, () -> fail(reason));
  }

  private static List<Path> files(Path root) {
    try (Stream<Path> files = Files.walk(root)) {
      return files
          .filter(file -> file.toString().endsWith(".json"))
          .filter(file -> !root.relativize(file).startsWith(SCHEMAS))
          .sorted()
          .toList();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static JsonNode content(Path file) {
    try {
      return MAPPER.readTree(file.toFile());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Returns an answer as it is once it was sent: numbers have their shortest type. */
  static JsonNode sent(JsonNode answer) throws IOException {
    return MAPPER.readTree(answer.toString());
  }

  /** Returns the elements of a list. */
  static List<JsonNode> list(JsonNode values) {
    List<JsonNode> list = new ArrayList<>();
    values.forEach(list::add);
    return list;
  }
}
