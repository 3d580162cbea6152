package io.antipode.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import com.example.feed.FeedSamples;
import io.antipode.Settings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Event;

/** Classes of an application's tests fail on what their requests read, not on how fast it was. */
class DryRunExtensionTest {
  private static final Path BASELINE = Path.of("target/known-findings.txt");

  private final Settings before = Settings.current();
  @TempDir Path folder;

  @BeforeEach
  @AfterEach
  void forget() throws IOException {
    Files.deleteIfExists(BASELINE);
    Settings.configure(held -> before);
  }

  private static EngineExecutionResults run(Class<?> sample) {
    return EngineTestKit.engine("junit-jupiter").selectors(selectClass(sample)).execute();
  }

  private static Optional<Throwable> failure(EngineExecutionResults results) {
    return results.containerEvents().failed().stream()
        .map(event -> event.getRequiredPayload(TestExecutionResult.class))
        .flatMap(result -> result.getThrowable().stream())
        .findFirst();
  }

  @Test
  void aClassWhoseReadsLackABarrierFailsThoughItsTestsPass() {
    EngineExecutionResults results = run(FeedSamples.Unguarded.class);
    results.testEvents().assertStatistics(tests -> tests.succeeded(2).failed(0));
    assertThat(failure(results).orElseThrow())
        .isInstanceOf(UnguardedReadsError.class)
        .hasMessageMatching(
            """
            com.example.feed.FeedSamples\\$Unguarded: 1 missing barrier
            u[0-9a-f]{8} posts: read from a replica without waiting for the write \\(2 reads\\)
              write com/example/feed/Feed.java:\\d+ in publish
              read  com/example/feed/Feed.java:\\d+ in show
              fix   Barriers.barrier\\(BarrierOptions.timeout\\(...\\).withOnly\\("posts"\\)\\) \
            before com/example/feed/Feed.java:\\d+ in show
              test  com.example.feed.FeedSamples\\$Unguarded::againTheyAre
              test  com.example.feed.FeedSamples\\$Unguarded::followersAreShownThePost""");
  }

  @Test
  void aClassWhoseReadsAreGuardedPasses() {
    EngineExecutionResults results = run(FeedSamples.Guarded.class);
    results.testEvents().assertStatistics(tests -> tests.succeeded(1).failed(0));
    assertThat(failure(results)).isEmpty();
  }

  @Test
  void nestedClassesArePartOfTheirClassAndEachTestBeginsInTheDryRun() {
    EngineExecutionResults results = run(FeedSamples.Outer.class);
    results.testEvents().assertStatistics(tests -> tests.succeeded(2).failed(0));
    List<Event> failed = results.containerEvents().failed().list();
    assertThat(failed)
        .singleElement()
        .extracting(event -> event.getTestDescriptor().getDisplayName())
        .asString()
        .endsWith("Outer");
    assertThat(failure(results).orElseThrow()).hasMessageContaining("Inner::isShownThePost");
  }

  @Test
  void whatWasConfiguredIsInForceAgainAndTheRecordsLieWhereItSays() throws IOException {
    Settings mine = before.withDryRunDir(folder.resolve("records"));
    Settings.configure(held -> mine);
    EngineExecutionResults ran = run(FeedSamples.Guarded.class);
    assertThat(failure(ran)).isEmpty();
    assertThat(Settings.current()).isSameAs(mine);
    try (var files = Files.list(folder.resolve("records"))) {
      assertThat(files).singleElement().asString().endsWith(".jsonl");
    }
  }

  @Test
  void whatTheBaselineKnowsFailsNothing() throws IOException {
    assertThat(failure(run(FeedSamples.Known.class)).orElseThrow())
        .isInstanceOf(ExtensionConfigurationException.class)
        .hasMessageContaining("no baseline");
    Files.writeString(BASELINE, "# known\nsomething else\n");
    assertThat(failure(run(FeedSamples.Known.class)).orElseThrow())
        .isInstanceOf(ExtensionConfigurationException.class)
        .hasMessageContaining("'something' is no id");
    Files.writeString(BASELINE, "# known\n");
    String message = failure(run(FeedSamples.Known.class)).orElseThrow().getMessage();
    String id = message.lines().skip(1).findFirst().orElseThrow().split(" ", 2)[0];
    Files.writeString(BASELINE, "# known\n" + id + " posts: show reads what publish wrote\n");
    assertThat(failure(run(FeedSamples.Known.class))).isEmpty();
  }
}
