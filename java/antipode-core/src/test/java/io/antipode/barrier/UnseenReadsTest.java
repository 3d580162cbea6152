package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.OnStale;
import io.antipode.Policy;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
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
import java.util.Collection;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reads that see less than one expects: without a scope, or of what is not committed yet. */
final class UnseenReadsTest {
  private static final String BEFORE_COMMIT = "read_before_commit";
  private static final BarrierOptions SOON =
      BarrierOptions.timeout(Duration.ofMillis(1)).returningUnmet();

  private final Settings before = Settings.current();
  private final Object writer = new Object();
  private final Shim replica = new Replica();

  @TempDir private Path folder;

  private static final class Replica extends Shim {
    Replica() {
      super("unseen", ReadsFrom.REPLICA);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      throw new UnreachableException("no test looks");
    }
  }

  /** A client that is declared to read from a primary. */
  private static final class Asked extends Shim {
    private final boolean isReplica;

    Asked(boolean isReplica) {
      super("unseen", ReadsFrom.PRIMARY);
      this.isReplica = isReplica;
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration longest) {
          throw new UnreachableException("no test looks");
        }

        @Override
        public boolean isReplica(Duration longest) {
          return isReplica;
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeEach
  void register() {
    Shims.register(replica);
  }

  @AfterEach
  void restore() {
    Recording.recordUncommitted("unseen", writer, false);
    replica.close();
    Settings.configure(held -> before);
  }

  private static long counted(String name) {
    return Counts.all().getOrDefault(new Counts.Metric(name, "unseen"), 0L);
  }

  private void read() {
    Object unused = Floor.current(replica);
  }

  private void begin() {
    Recording.recordUncommitted("unseen", writer, true);
  }

  private List<String> lints() throws IOException {
    Settings.configure(held -> before);
    List<String> records = new ArrayList<>();
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        records.addAll(Files.readAllLines(file));
      }
    }
    records.removeIf(each -> !each.contains("\"kind\":\"lint\""));
    return records;
  }

  /** Each transaction counts once, whatever is sent meanwhile; after its end nothing is said. */
  @Test
  void whatLeavesBeforeTheCommitIsCounted() {
    long counted = counted("sent_before_commit");
    try (ScopeBlock block = Antipode.scope()) {
      begin();
      assertThat(block.scope().text()).isEqualTo(block.scope().text());
      assertThat(block.scope().answer()).isEqualTo("1");
      assertThat(counted("sent_before_commit")).isEqualTo(counted + 1);
      Recording.recordUncommitted("unseen", writer, false);
      assertThat(block.scope().text()).isEqualTo("1");
    }
    assertThat(counted("sent_before_commit")).isEqualTo(counted + 1);
  }

  /** A lineage that is stored says nothing of an open transaction, but within that one. */
  @Test
  void whatIsStoredBeforeTheCommitIsCounted() {
    long counted = counted("sent_before_commit");
    Object elsewhere = new Object();
    try (ScopeBlock block = Antipode.scope()) {
      begin();
      Recording.recordStored(writer);
      assertThat(counted("sent_before_commit")).isEqualTo(counted);
      Recording.recordStored(elsewhere);
      Recording.recordStored(null);
      assertThat(counted("sent_before_commit")).isEqualTo(counted + 1);
      Recording.recordUncommitted("unseen", writer, false);
      Recording.recordStored(null);
    }
    Recording.recordStored(null);
    assertThat(counted("sent_before_commit")).isEqualTo(counted + 1);
  }

  /** A read without a scope is counted and never fails; in a stopped scope nothing is missing. */
  @Test
  void aReadWithoutAScopeIsCounted() {
    Settings.configure(held -> before.withOnUnscoped(Policy.RAISE));
    long unscoped = counted("unscoped_read");
    read();
    assertThat(Floor.currentAhead(replica, new StaleRead())).isNull();
    assertThat(Floor.currentAgain(replica)).isNull();
    assertThat(counted("unscoped_read")).isEqualTo(unscoped + 2);
    try (ScopeBlock block = Antipode.scope()) {
      read();
      Antipode.stop();
      read();
    }
    assertThat(counted("unscoped_read")).isEqualTo(unscoped + 2);
  }

  /** What another connection reads before the commit is counted; the transaction's own is not. */
  @Test
  void aReadBeforeTheCommitIsCounted() {
    long told = counted(BEFORE_COMMIT);
    try (ScopeBlock block = Antipode.scope()) {
      read();
      begin();
      assertThat(Floor.current(replica, writer, new StaleRead())).isNull();
      assertThat(counted(BEFORE_COMMIT)).isEqualTo(told);
      assertThat(Antipode.uncommitted()).containsExactly("unseen");
      read();
      assertThat(Floor.current(replica, new Object(), new StaleRead())).isNull();
      assertThat(counted(BEFORE_COMMIT)).isEqualTo(told + 2);
      try (ScopeBlock request = Antipode.scope()) {
        read();
      }
      Recording.recordUncommitted("unseen", writer, false);
      read();
      assertThat(Antipode.uncommitted()).isEmpty();
    }
    assertThat(counted(BEFORE_COMMIT)).isEqualTo(told + 2);
  }

  /** A barrier is counted where it waits for the datastore of an open transaction. */
  @Test
  void aBarrierBeforeTheCommitIsCounted() {
    long told = counted(BEFORE_COMMIT);
    try (ScopeBlock block = Antipode.scope()) {
      begin();
      Barriers.barrier(SOON);
      Barriers.barrier(SOON.withOnly("unseen"));
      Barriers.barrier(SOON.withLineage(Lineage.of(WriteId.of("unseen", "log", 1))));
      assertThat(counted(BEFORE_COMMIT)).isEqualTo(told + 3);
      Barriers.barrier(SOON.withOnly("users"));
      Barriers.barrier(SOON.withExclude("unseen"));
      Barriers.barrier(SOON.withLineage(Lineage.empty()));
      Recording.recordUncommitted("unseen", writer, false);
      Barriers.barrier(SOON);
    }
    assertThat(counted(BEFORE_COMMIT)).isEqualTo(told + 3);
  }

  /** The dry run has both, the one with the place of the write. */
  @Test
  void bothAreLints() throws IOException {
    Settings.configure(held -> before.withMode(Mode.DRY_RUN).withDryRunDir(folder));
    read();
    try (ScopeBlock block = Antipode.scope()) {
      begin();
      read();
    }
    List<String> found = lints();
    assertThat(found).hasSize(2);
    assertThat(found.get(0)).contains("\"lint\":\"unscoped-read\"", "\"request\":null");
    assertThat(found.get(1))
        .contains("\"lint\":\"read-before-commit\"", "\"detail\":\"read, written at ");
  }

  /** A client of which nobody said that it reads from a replica: its server says so, once. */
  @Test
  void aReplicaThatNobodyDeclaredIsALint() throws IOException {
    Settings.configure(held -> before.withMode(Mode.DRY_RUN).withDryRunDir(folder));
    try (Shim undeclared = new Asked(true);
        Shim primary = new Asked(false)) {
      Object unused = Floor.current(undeclared);
      try (ScopeBlock block = Antipode.scope(Lineage.of(WriteId.of("unseen", "log", 1)))) {
        for (int reads = 0; reads < 3; reads++) {
          unused = Floor.current(undeclared);
          unused = Floor.current(primary);
        }
      }
      List<String> found = lints();
      found.removeIf(each -> !each.contains("\"lint\":\"undeclared-replica\""));
      assertThat(found).hasSize(1);
      assertThat(found.get(0)).contains("\"datastore\":\"unseen\"").doesNotContain("null");
    }
  }

  /** An automatic read counts a datastore that is unknown here, or refuses it as a barrier does. */
  @Test
  void aDatastoreThatIsUnknownHereIsCounted() {
    Settings.configure(held -> before.withBarriers(ReadBarriers.AUTO).withOnStale(OnStale.RAISE));
    Counts.Metric unknown = new Counts.Metric("unknown_store", "unsene");
    try (ScopeBlock block = Antipode.scope(Lineage.of(WriteId.of("unsene", "log", 1)))) {
      read();
      assertThat(Counts.all()).containsEntry(unknown, 1L);
      Settings.configure(held -> held.withOnUnknown(Policy.RAISE));
      assertThatThrownBy(this::read).isInstanceOf(UnknownDatastoreException.class);
      assertThat(Counts.all()).containsEntry(unknown, 1L);
    }
  }
}
