package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Policy;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a barrier records of what its watchers see, without threads. */
class WaiterTest {
  private static final WriteId FIRST = WriteId.of("a", "log", 7);
  private static final WriteId OTHER = WriteId.of("b", "log", 1);
  private static final Policies POLICIES =
      new Policies(true, null, Policy.RAISE, Duration.ofDays(7), 500_000);

  private final HandClock clock = new HandClock();
  private final AtomicInteger notified = new AtomicInteger();
  private final VisibleShim first = new VisibleShim("a", clock);
  private final VisibleShim other = new VisibleShim("b", clock);

  /** Time that passes if asked to; what runs on it is stepped by a test. */
  private static final class HandClock implements Clock {
    long nanos;

    @Override
    public long nanoTime() {
      return nanos;
    }

    @Override
    public Instant now() {
      return Instant.EPOCH.plusNanos(nanos);
    }

    @Override
    public @Nullable Thread spawn(Stepper stepper) {
      return null;
    }

    @Override
    public Runnable schedule(Duration delay, Runnable task) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void execute(Runnable task) {
      throw new UnsupportedOperationException();
    }
  }

  /** A store that shows all. */
  private static final class VisibleShim extends Shim {
    VisibleShim(String datastore, Clock clock) {
      super(datastore, ReadsFrom.REPLICA, clock);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration longest) {
          return visible("server-1", writes);
        }

        @Override
        public void close() {}
      };
    }
  }

  private static Observation visible(String server, Collection<WriteId> writes) {
    Observation.Builder shown = Observation.of(server);
    writes.forEach(write -> shown.write(write, Status.VISIBLE));
    return shown.build();
  }

  @BeforeEach
  void register() {
    Shims.register(first);
    Shims.register(other);
  }

  @AfterEach
  void close() {
    first.close();
    other.close();
  }

  private Wait waiting(Map<String, Set<Dependency>> pending) {
    return new Wait(pending, List.of(), List.of(), POLICIES, clock, Duration.ofSeconds(9));
  }

  private Waiter waiter(Wait wait, boolean once) {
    return new Waiter(wait, notified::incrementAndGet, clock, once);
  }

  /** A poll that ends after the cancellation changes no outcome, and notifies nobody. */
  @Test
  void aCancelledBarrierRecordsNothing() {
    Wait wait = waiting(Map.of("a", Set.of(FIRST)));
    Waiter waiter = waiter(wait, false);
    waiter.cancel();
    waiter.unreachable("a", "late");
    waiter.take("a", visible("server-1", Set.of(FIRST)));
    assertThat(waiter.wanted("a")).isEmpty();
    assertThat(wait.result(1).outcomes())
        .extracting(Outcome::status)
        .containsExactly(Status.NOT_YET);
    assertThat(notified).hasValue(0);
  }

  /** The watcher forgets a cancelled barrier at once, and does not find out at its next poll. */
  @Test
  void aCancelledBarrierIsWatchedNoLonger() {
    Waiter waiter = waiter(waiting(Map.of("a", Set.of(FIRST))), false);
    waiter.subscribe();
    first.watcher().wake().clear();
    waiter.cancel();
    assertThat(first.watcher().wake().isSet()).isTrue();
  }

  /** A barrier of one poll of each datastore polls twice what was met before a wait. */
  @Test
  void onePollCountsAgainForWhatIsAskedAgain() {
    Wait wait = waiting(Map.of("a", Set.of(FIRST), "b", Set.of(OTHER)));
    Waiter waiter = waiter(wait, true);
    waiter.take("a", visible("server-1", Set.of(FIRST)));
    clock.nanos = Duration.ofMillis(900).toNanos();
    wait.unreachable("b", "late", clock.nanos);
    clock.nanos = Duration.ofSeconds(1).toNanos();
    waiter.take("b", visible("server-2", Set.of(OTHER)));
    assertThat(waiter.wanted("a")).containsExactly(FIRST);
    assertThat(notified).hasValue(0);
    assertThat(first.watcher().step()).isNotNull();
    assertThat(notified).hasValue(1);
    assertThat(wait.result(clock.nanos).isOk()).isTrue();
  }
}
