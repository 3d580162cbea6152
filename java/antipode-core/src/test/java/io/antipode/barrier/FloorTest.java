package io.antipode.barrier;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Policy;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Allowance;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What a floor knows of servers, of connections and of other floors. No server is asked. */
class FloorTest {
  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final WriteId LATER = WriteId.of("posts", "other log", 1);
  private static final Promise PROMISE = new Promise("posts", "0".repeat(32), 2_000_000_000L);

  private static Demand demand(Dependency... wanted) {
    Policies policies = new Policies(false, null, Policy.RAISE, Duration.ofDays(7), 500_000);
    return new Demand(Set.of(wanted), policies, new Allowance(Duration.ofSeconds(9)), Map.of());
  }

  private static Floor floor(Demand... demands) {
    return new Floor("posts", List.of(demands), Clock.system());
  }

  private static Observation shown(Status status) {
    return Observation.of("one").write(WRITE, status).build();
  }

  @Test
  void aFloorIsWithinAnotherWhereThatHasAllOfItsDemands() {
    Demand first = demand(WRITE);
    Floor both = floor(first, demand(LATER));
    assertThat(floor(first).isWithin(both)).isTrue();
    assertThat(both.isWithin(floor(first))).isFalse();
    assertThat(both.isWithin(null)).isFalse();
  }

  @Test
  void whatOneServerShowedIsNoProofOfAnother() {
    Floor floor = floor(demand(WRITE));
    assertThat(floor.accepts(shown(Status.VISIBLE))).isTrue();
    assertThat(floor.isProvedOn("one")).isTrue();
    assertThat(floor.isProvedOn("another")).isFalse();
  }

  /** What may come there is not worth a connection; what never comes is said on it. */
  @Test
  void aConnectionThatShowsLessThanItMayGoesBackToItsPool() {
    Floor floor = floor(demand(WRITE));
    assertThat(floor.mayKeep(shown(Status.NOT_YET))).isFalse();
    assertThat(floor.mayKeep(shown(Status.LOST))).isTrue();
    assertThat(floor.mayKeep(shown(Status.VISIBLE))).isTrue();
  }

  @Test
  void aBranchDoesNotWaitForWhatItFulfilsItself() {
    Demand outer = demand(WRITE, PROMISE);
    assertThat(requireNonNull(outer.branched(Set.of(PROMISE.id()))).wanted())
        .containsExactly(WRITE);
    assertThat(requireNonNull(outer.branched(Set.of())).wanted()).contains(PROMISE);
  }
}
