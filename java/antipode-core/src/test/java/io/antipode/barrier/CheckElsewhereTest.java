package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A check where replicas are read that nobody can poll: no primary is asked in their place. */
final class CheckElsewhereTest {
  private static final WriteId POST = WriteId.of("pooled", "log", 7);

  private final Server primary = new Server(ReadsFrom.PRIMARY, true);
  private final Server pool = new Server(ReadsFrom.REPLICA, false);

  private static final class Server extends Shim {
    private final boolean isPolled;
    private int opened;

    Server(ReadsFrom readsFrom, boolean isPolled) {
      super("pooled", readsFrom);
      this.isPolled = isPolled;
    }

    @Override
    public boolean canPoll() {
      return isPolled;
    }

    @Override
    public boolean holdsReads() {
      return true;
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      opened++;
      throw new UnreachableException("no test looks");
    }
  }

  @BeforeEach
  void register() {
    Shims.register(primary);
    Shims.register(pool);
  }

  @AfterEach
  void close() {
    primary.close();
    pool.close();
  }

  /** The primary shows all that was written: its answer would say nothing. The read waits. */
  @Test
  void itIsLeftToTheReads() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      BarrierResult result = Barriers.check(BarrierOptions.check());
      assertThat(result.isOk()).isTrue();
      assertThat(result.outcomes()).extracting(Outcome::status).containsExactly(Status.DEFERRED);
      assertThat(primary.opened).isZero();
      Floor held = Objects.requireNonNull(Floor.current(pool));
      assertThat(held.writes()).containsExactly(POST);
    }
  }

  /** One replica that can be polled stands for them, as it does for barriers. */
  @Test
  void aReplicaThatCanBePolledIsAsked() {
    try (Server replica = new Server(ReadsFrom.REPLICA, true);
        ScopeBlock block = Antipode.scope(Lineage.of(POST))) {
      Shims.register(replica);
      assertThat(Barriers.check(BarrierOptions.check()).isOk()).isFalse();
      assertThat(replica.opened).isPositive();
      assertThat(primary.opened).isZero();
    }
  }
}
