package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;

/** Reads vectors where they lie. */
final class Vectors {
  private static final Path FOLDER = Path.of(System.getProperty("antipode.conformance"));
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Vectors() {}

  /** Returns a test for each string of a kind in the files of a folder. */
  static Stream<DynamicTest> entries(String folder, String kind, Consumer<String> check) {
    return files(folder)
        .flatMap(file -> vectors(file, kind))
        .map(JsonNode::asText)
        .map(entry -> DynamicTest.dynamicTest("'" + entry + "'", () -> check.accept(entry)));
  }

  /** Returns a test for each vector of a kind in the files of a folder. */
  static Stream<DynamicTest> tests(String folder, String kind, Consumer<JsonNode> check) {
    return files(folder)
        .flatMap(file -> vectors(file, kind))
        .map(
            vector ->
                DynamicTest.dynamicTest(vector.get("name").asText(), () -> check.accept(vector)));
  }

  /** Returns a test for each vector of a kind in the file of a store. */
  static Stream<DynamicTest> tests(
      String folder, String store, String kind, Consumer<JsonNode> check) {
    return vectors(FOLDER.resolve(folder).resolve(store + ".json"), kind)
        .map(
            vector ->
                DynamicTest.dynamicTest(vector.get("name").asText(), () -> check.accept(vector)));
  }

  /** Returns what the shim of a store makes of one vector. */
  static JsonNode decided(String store, String kind, JsonNode given) {
    return Decisions.decide(
        MAPPER.createObjectNode().put("store", store).put("kind", kind).set("given", given));
  }

  private static Stream<Path> files(String folder) {
    try (Stream<Path> files = Files.list(FOLDER.resolve(folder))) {
      return files.filter(file -> file.toString().endsWith(".json")).sorted().toList().stream();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Stream<JsonNode> vectors(Path file, String kind) {
    try {
      JsonNode vectors = MAPPER.readTree(file.toFile()).path(kind);
      return StreamSupport.stream(vectors.spliterator(), false);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
