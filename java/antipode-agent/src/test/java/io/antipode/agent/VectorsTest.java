package io.antipode.agent;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.agent.Vectors.Check;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** All vectors of the specification, read where they lie. */
class VectorsTest {
  /** Calls are Python's until now. */
  private static final Map<String, Check> CALLS =
      Map.of(
          "digests", (store, call) -> {},
          "headers", (store, call) -> {},
          "identities", (store, call) -> {},
          "nested", (store, call) -> {});

  private static final Map<String, Map<String, Check>> LEVELS =
      Map.ofEntries(
          entry("C1-calls", CALLS),
          entry("golden/v1", CodecChecks.GOLDEN),
          entry("L1-codec", CodecChecks.CODEC),
          entry("L2-algebra", CodecChecks.ALGEBRA),
          entry("L3-headers", HeaderChecks.KINDS),
          entry("L4-automatic", BarrierChecks.KINDS),
          entry("L4-barrier", BarrierChecks.KINDS),
          entry("L4-guard", BarrierChecks.GUARDS),
          entry("S1-positions", StoreChecks.KINDS),
          entry("S2-commands", StoreChecks.KINDS),
          entry("S3-stored", StoreChecks.KINDS));

  @TestFactory
  Stream<DynamicTest> everyVectorHolds() {
    return Vectors.tests(Vectors.FOLDER, LEVELS);
  }

  @Test
  void whatNothingChecksFails(@TempDir Path root) throws IOException {
    write(root, "L5-live/pairs.json", "{\"valid\": [{\"name\": \"of no level\"}]}");
    write(root, "L1-codec/further.json", "{\"store\": \"no kind\", \"further\": [{}]}");
    write(root, "S1-positions/empty.json", "{\"store\": \"redis\", \"looks\": []}");
    List<DynamicTest> tests = Vectors.tests(root, LEVELS).toList();
    assertThat(tests)
        .extracting(DynamicTest::getDisplayName)
        .containsExactly(
            "L1-codec/further.json/further", "L5-live/pairs.json/valid", "S1-positions/empty.json");
    for (DynamicTest test : tests) {
      assertThatThrownBy(test.getExecutable()::execute).isInstanceOf(AssertionError.class);
    }
  }

  private static void write(Path root, String file, String content) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, content);
  }
}
