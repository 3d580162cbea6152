package com.example.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a dry run writes down of an application, in whose package this test is; its verdicts are
 * vectors.
 */
class DryRunTest {
  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final BarrierOptions SOON = BarrierOptions.timeout(Duration.ofSeconds(1));

  private final Settings before = Settings.current();
  private final Shim replica = new Replica();
  @TempDir Path folder;

  /** A store that nobody reaches: a dry run asks no server. */
  private static final class Replica extends Shim {
    Replica() {
      super("posts", ReadsFrom.REPLICA);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      throw new UnreachableException("a dry run does not look");
    }
  }

  @BeforeEach
  void register() {
    Shims.register(replica);
  }

  @AfterEach
  void restore() {
    replica.close();
    Settings.configure(held -> before);
  }

  private void begin(Path directory) {
    Settings.configure(held -> before.withMode(Mode.DRY_RUN).withDryRunDir(directory));
  }

  /** Ends the dry run, and returns its records of some kind. */
  private List<String> records(String kind) throws IOException {
    Settings.configure(held -> before);
    List<String> records = new ArrayList<>();
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        records.addAll(Files.readAllLines(file));
      }
    }
    records.removeIf(each -> !each.contains("\"kind\":\"" + kind + "\""));
    return records;
  }

  private void read() {
    Object unused = Floor.current(replica);
  }

  @Test
  void placesAreTheApplicationsAlsoThoseOfLambdas() throws IOException {
    begin(folder);
    try (ScopeBlock block = Antipode.scope()) {
      Antipode.append(WRITE);
      Runnable later = () -> read();
      List.of(later).forEach(Runnable::run);
    }
    String file = "\"site\":{\"file\":\"com/example/feed/DryRunTest.java\"";
    assertThat(records("read"))
        .singleElement()
        .asString()
        .contains(file, "\"function\":\"read\"", "\"verdict\":\"unguarded\"");
    assertThat(records("write"))
        .singleElement()
        .asString()
        .contains(file, "\"function\":\"placesAreTheApplicationsAlsoThoseOfLambdas\"");
    assertThat(records("process"))
        .singleElement()
        .asString()
        .contains("\"language\":\"java\"", "\"region\":null");
  }

  @Test
  void aLambdaIsNamedByTheMethodThatItIsWrittenIn() throws IOException {
    begin(folder);
    Runnable barrier = () -> Barriers.barrier(SOON.withLineage(Lineage.of(WRITE)));
    barrier.run();
    assertThat(records("barrier"))
        .singleElement()
        .asString()
        .contains(
            "\"function\":\"aLambdaIsNamedByTheMethodThatItIsWrittenIn\"", "\"request\":null");
  }

  @Test
  void whatNoBarrierCanMakeUpForIsSaid() throws IOException {
    begin(folder);
    Recording.recordWrite(WRITE);
    try (ScopeBlock block = Antipode.scope()) {
      Barriers.barrier(SOON);
      Barriers.check(BarrierOptions.check());
      String answer = block.scope().answer();
      assertThat(answer).as("the request's id goes back").contains("~0r");
      Antipode.append(WRITE);
    }
    assertThat(records("lint"))
        .extracting(line -> line.replaceAll(".*\"lint\":\"([a-z-]+)\".*", "$1"))
        .containsExactly("unscoped-write", "nothing-to-wait-for", "after-response");
  }

  @Test
  void nothingIsThrownThatABarrierWouldThrow() {
    Settings.configure(
        held -> before.withMode(Mode.DRY_RUN).withOnUnscoped(Policy.RAISE).withDryRunDir(null));
    Barriers.barrier(SOON);
    Barriers.barrier(SOON.withLineage("no lineage"));
    Settings.configure(held -> held.withMode(Mode.ENFORCE));
    assertThatThrownBy(() -> Barriers.barrier(SOON)).isInstanceOf(ConfigurationException.class);
  }

  @Test
  void findingsAreCountedWithoutADirectoryAndWithOneThatCannotBeWritten() throws IOException {
    long counted = count("unguarded_read", "posts");
    long unwritten = count("dry_run_unwritten", "");
    begin(Files.createFile(folder.resolve("a-file")));
    try (ScopeBlock block = Antipode.scope()) {
      Antipode.append(WRITE);
      read();
      Settings.configure(held -> held.withDryRunDir(null));
      read();
    }
    assertThat(count("unguarded_read", "posts")).isEqualTo(counted + 2);
    assertThat(count("dry_run_unwritten", "")).isEqualTo(unwritten + 1);
  }

  private static long count(String name, String datastore) {
    return Counts.all().getOrDefault(new Counts.Metric(name, datastore), 0L);
  }

  @Test
  void anInterruptedThreadEndsNoFile() throws IOException {
    begin(folder);
    try (ScopeBlock block = Antipode.scope()) {
      Thread.currentThread().interrupt();
      Antipode.append(WRITE);
      assertThat(Thread.interrupted()).isTrue();
      read();
    }
    assertThat(records("write")).hasSize(1);
    assertThat(records("read")).hasSize(1);
  }
}
