package io.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import org.junit.jupiter.api.Test;

/** Lineages of what is read from the replication stream. */
class RedisEventsTest {
  private static final String REPLID = "f".repeat(40);

  /** As a writer's own entry. */
  @Test
  void anOffsetIsAPosition() {
    WriteId write = RedisEvents.lineage("posts", 7, REPLID).writes().iterator().next();
    assertThat(Lineage.of(write)).isEqualTo(RedisEvents.lineage("posts", 7, REPLID));
    assertThat(write.key()).isEqualTo(REPLID);
    assertThat(write.version()).isEqualTo(7);
    assertThat(write.isCovering()).isFalse();
  }

  /** Nobody is asked. */
  @Test
  void aForgedOffsetIsAnError() {
    for (long offset : new long[] {0, -1}) {
      assertThatThrownBy(() -> RedisEvents.lineage("posts", offset, REPLID))
          .isInstanceOf(IllegalArgumentException.class);
    }
    for (String replid : new String[] {"", "g".repeat(40), "f".repeat(41)}) {
      assertThatThrownBy(() -> RedisEvents.lineage("posts", 7, replid))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
