package com.example.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.barrier.Clock;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.StaleRead;
import io.antipode.barrier.StalenessCheck;
import io.antipode.barrier.Status;
import io.antipode.barrier.Stepper;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Observer;
import io.antipode.request.Observers;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a dry run finds out about reads that nothing guards. */
@Timeout(20)
class EvidenceTest {
  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final Duration LONG = Duration.ofSeconds(10);

  private final Settings before = Settings.current();
  private final MovedClock clock = new MovedClock();
  private final Replica replica = new Replica(clock);
  @TempDir Path folder;

  /** The machine's, which a test can move on. */
  private static final class MovedClock implements Clock {
    volatile Duration moved = Duration.ZERO;

    @Override
    public long nanoTime() {
      return Clock.system().nanoTime() + moved.toNanos();
    }

    @Override
    public Instant now() {
      return Clock.system().now().plus(moved);
    }

    @Override
    public @Nullable Thread spawn(Stepper stepper) {
      return Clock.system().spawn(stepper);
    }

    @Override
    public Runnable schedule(Duration delay, Runnable task) {
      return Clock.system().schedule(delay, task);
    }

    @Override
    public void execute(Runnable task) {
      Clock.system().execute(task);
    }
  }

  /** A store with one log, whose looks are over as this test says. */
  private static final class Replica extends Shim {
    volatile long shown;

    Replica(Clock clock) {
      super("posts", ReadsFrom.REPLICA, clock);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration timeout) {
          Observation.Builder seen = Observation.of("incarnation");
          writes.forEach(
              each -> seen.write(each, each.version() <= shown ? Status.VISIBLE : Status.NOT_YET));
          return seen.build();
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeEach
  void begin() {
    Shims.register(replica);
    Settings.configure(held -> before.withMode(Mode.DRY_RUN).withDryRunDir(folder));
  }

  @AfterEach
  void restore() {
    replica.close();
    Settings.configure(held -> before);
  }

  private static Observer dryRun() {
    return Objects.requireNonNull(Observers.dryRun());
  }

  private void read() {
    Object unused = Floor.current(replica);
  }

  /** Returns a thread that has read in the current scope, and ends when it may. */
  private Thread startReader(CountDownLatch mayEnd) throws InterruptedException {
    CountDownLatch isSent = new CountDownLatch(1);
    Thread reader =
        new Thread(
            Context.current()
                .wrap(
                    () -> {
                      read();
                      isSent.countDown();
                      await(mayEnd);
                    }));
    reader.start();
    isSent.await();
    return reader;
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Returns the evidence written so far. */
  private List<String> evidence() throws IOException {
    List<String> records = new ArrayList<>();
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        records.addAll(Files.readAllLines(file));
      }
    }
    records.removeIf(each -> !each.contains("\"kind\":\"evidence\""));
    return records;
  }

  /** Ends the dry run: what is known by then is written. */
  private List<String> evidenceAtTheEnd() throws IOException {
    Settings.configure(held -> before);
    return evidence();
  }

  @Test
  void aReadIsConfirmedStaleByALookThatBeganAfterIt() throws Exception {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      read();
      dryRun().settle(LONG);
      replica.shown = 7;
      while (evidence().isEmpty()) {
        Thread.onSpinWait();
      }
    }
    assertThat(evidenceAtTheEnd())
        .singleElement()
        .asString()
        .containsPattern("\"of\":2,\"confirmed\":true,\"waited_s\":0\\.\\d{6}}");
  }

  @Test
  void ofAReadThatMayHaveShownItNobodyKnows() throws Exception {
    replica.shown = 7;
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      read();
      dryRun().settle(LONG);
    }
    assertThat(evidenceAtTheEnd())
        .singleElement()
        .asString()
        .containsPattern("\"confirmed\":null,\"waited_s\":0\\.\\d{6}}");
  }

  @Test
  void whatIsNotVisibleWhenTheDryRunEndsWasNotWaitedFor() throws Exception {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      read();
      dryRun().settle(LONG);
    }
    assertThat(evidenceAtTheEnd())
        .singleElement()
        .asString()
        .contains("\"confirmed\":true,\"waited_s\":null}");
  }

  @Test
  void nothingIsConfirmedOfAReadThatMayBeUnderWay() throws Exception {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      Object unused = Floor.currentAhead(replica, new StaleRead());
      dryRun().settle(LONG);
    }
    assertThat(evidenceAtTheEnd()).isEmpty();
  }

  @Test
  void aReadOfAnotherThreadIsOverWhenThatThreadIs() throws Exception {
    CountDownLatch mayEnd = new CountDownLatch(1);
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      Thread reader = startReader(mayEnd);
      dryRun().settle(LONG);
      assertThat(evidence()).isEmpty();
      mayEnd.countDown();
      reader.join();
      dryRun().settle(LONG);
    }
    assertThat(evidenceAtTheEnd()).hasSize(1);
  }

  @Test
  void aReadThatIsOpenBeyondTheBoundIsCounted() throws Exception {
    Counts.Metric metric = new Counts.Metric("dry_run_evidence_dropped", "posts");
    long counted = Counts.all().getOrDefault(metric, 0L);
    CountDownLatch mayEnd = new CountDownLatch(1);
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      Thread reader = startReader(mayEnd);
      clock.moved = StalenessCheck.BOUND.plusSeconds(1);
      dryRun().settle(LONG);
      assertThat(Counts.all().get(metric)).isEqualTo(counted + 1);
      mayEnd.countDown();
      reader.join();
      dryRun().settle(LONG);
    }
    assertThat(evidenceAtTheEnd()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatLeavesWithinATransactionThatWroteIsSaid(boolean isStored) throws Exception {
    Object connection = new Object();
    try (ScopeBlock block = Antipode.scope()) {
      for (boolean wrote : List.of(true, false)) {
        Recording.recordUncommitted("posts", connection, wrote);
        if (isStored) {
          Recording.recordStored(null);
        } else {
          String unused = block.scope().text();
        }
      }
    }
    Settings.configure(held -> before);
    try (var files = Files.list(folder)) {
      assertThat(Files.readString(files.findFirst().orElseThrow()).split("in-transaction", -1))
          .as("said once")
          .hasSize(2);
    }
  }
}
