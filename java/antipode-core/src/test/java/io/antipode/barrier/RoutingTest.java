package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Measures;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where a router of reads sends the next one. */
@Timeout(20)
final class RoutingTest {
  private static final WriteId WRITE = WriteId.of("routed", "log", 7);

  private final Settings before = Settings.current();
  private final Advanced clock = new Advanced();
  private final Server primary = new Server(ReadsFrom.PRIMARY, clock);
  private final Server replica = new Server(ReadsFrom.REPLICA, clock);

  /** The machine's clock, and how far it was set forward. */
  private static final class Advanced implements Clock {
    volatile long byNs;

    @Override
    public long nanoTime() {
      return Clock.system().nanoTime() + byNs;
    }

    @Override
    public Instant now() {
      return Clock.system().now();
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

  private static final class Server extends Shim {
    final AtomicInteger polls = new AtomicInteger();
    volatile long position;
    volatile @Nullable Exception absent;

    Server(ReadsFrom readsFrom, Clock clock) {
      super("routed", readsFrom, clock);
    }

    @Override
    public boolean canFence() {
      return readsFrom() == ReadsFrom.PRIMARY;
    }

    @Override
    public Set<WriteId> fence(Duration timeout) {
      return Set.of(WriteId.of("routed", "log", position));
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      Exception refusal = absent;
      if (refusal != null) {
        throw new UnreachableException(String.valueOf(refusal.getMessage()), refusal);
      }
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration timeout) {
          polls.incrementAndGet();
          Observation.Builder shown = Observation.of("incarnation");
          for (WriteId write : writes) {
            if (position >= write.version()) {
              shown.write(write, Status.VISIBLE);
            }
          }
          return shown.build();
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeEach
  void register() {
    Settings unused =
        Settings.configure(
            held ->
                held.withBarriers(ReadBarriers.AUTO)
                    .withAutoTimeout(Duration.ofMillis(1))
                    .withOnStale(OnStale.PRIMARY));
    Shims.register(primary);
    Shims.register(replica);
  }

  @AfterEach
  void close() {
    primary.close();
    replica.close();
    Settings unused = Settings.configure(held -> before);
  }

  /** It does not go back in time, and asks the replica no more; the next request does. */
  @Test
  void aRequestThatWasMovedStaysAtThePrimary() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      replica.position = WRITE.version();
      int polls = replica.polls.get();
      for (int decision = 0; decision < 60; decision++) {
        assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      }
      assertThat(replica.polls).hasValue(polls);
    }
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.REPLICA);
    }
  }

  /** It may have read at the primary what came after the write that moved it. */
  @Test
  void aLongRequestGoesBackOnceTheReplicaShowsAllOfThePrimary() {
    primary.position = WRITE.version() + 2;
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      clock.byNs = Duration.ofSeconds(31).toNanos();
      replica.position = WRITE.version();
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      replica.position = primary.position;
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.REPLICA);
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.REPLICA);
    }
  }

  /** Where its host refuses, or has no address: the primary's turn comes at once, each time. */
  @Test
  void aReplicaThatIsNotThereIsNotWaitedFor() {
    Settings unused = Settings.configure(held -> held.withAutoTimeout(Duration.ofMinutes(5)));
    for (Exception refusal :
        List.of(new ConnectException("Connection refused"), new UnknownHostException("db"))) {
      replica.absent = refusal;
      for (int request = 0; request < 6; request++) {
        try (ScopeBlock reader = Antipode.scope(Lineage.of(WRITE))) {
          assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
        }
      }
    }
  }

  /** What a router asks before it goes another way rings no alert on barriers that fail. */
  @Test
  void toReadAtThePrimaryIsNoFailedBarrier() {
    List<String> ended = new CopyOnWriteArrayList<>();
    Measures.Measure measure =
        new Measures.Measure() {
          @Override
          public void ended(String operation, String status, String error, Duration took) {
            ended.add(operation + " " + status + " " + error);
          }

          @Override
          public void waited(String datastore, String outcome, String at, Duration waited) {}

          @Override
          public void unmet(String operation, String datastore, String outcome) {
            ended.add(operation + " " + outcome);
          }

          @Override
          public void left(String carrier, int bytes, int entries) {}
        };
    Measures.follow(measure);
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
    } finally {
      Measures.unfollow(measure);
    }
    assertThat(ended).containsExactly("route barrier_timeout ", "route not_yet");
  }

  /** So is a branch of the request; reads of another datastore are where they were. */
  @Test
  void branchesStayAsTheirRequestDoes() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      replica.position = WRITE.version();
      Runnable reads = () -> assertThat(Barriers.readsFrom("routed")).isEqualTo(ReadsFrom.PRIMARY);
      Antipode.branch(reads).run();
      assertThat(Moved.cause(Scope.currentOrNull(), "other")).isNull();
    }
  }
}
