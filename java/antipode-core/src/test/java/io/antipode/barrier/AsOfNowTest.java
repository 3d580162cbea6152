package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A primary's position, for an event that names none. */
@Timeout(20)
final class AsOfNowTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);
  private static final WriteId NOW = WriteId.of("events", "log", 9).asCovering();
  private static final Lineage UNSAMPLED =
      Lineage.empty().marked(new Incomplete("events", "unsampled"));

  private final Primary primary = new Primary();

  /** A primary that answers as it is told to. */
  private static final class Primary extends Shim {
    final CountDownLatch free = new CountDownLatch(1);
    Set<WriteId> answer = Set.of();
    boolean isHanging;

    Primary() {
      super("events", ReadsFrom.PRIMARY);
    }

    @Override
    public boolean canFence() {
      return true;
    }

    @Override
    public Set<WriteId> fence(Duration timeout) throws InterruptedException {
      if (isHanging) {
        free.await();
      }
      if (answer.isEmpty()) {
        throw new UnreachableException("refused");
      }
      return answer;
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      throw new UnreachableException("refused");
    }

    WriteId demand() {
      return following("the primary");
    }
  }

  @BeforeEach
  void register() {
    Shims.register(primary);
  }

  @AfterEach
  void close() {
    primary.free.countDown();
    primary.close();
  }

  /** That a server follows the primary is judged at a barrier's own polls alone. */
  @Test
  void itIsThePositionAndNothingElse() {
    primary.answer = Set.of(NOW, primary.demand());
    assertThat(Antipode.asOfNow("events", TIMEOUT)).isEqualTo(Lineage.of(NOW));
  }

  /** And never an empty lineage. */
  @Test
  void noAnswerIsAMark() {
    assertThat(Antipode.asOfNow("events", TIMEOUT)).isEqualTo(UNSAMPLED);
  }

  /** Whatever its client does. */
  @Test
  void aPrimaryThatHangsIsLeftAloneInTime() {
    primary.answer = Set.of(NOW);
    primary.isHanging = true;
    assertThat(Antipode.asOfNow("events", Duration.ofMillis(50))).isEqualTo(UNSAMPLED);
  }

  /** The same, and no thread waits. */
  @Test
  void whatWillBeThePositionIsTheSame() {
    assertThat(Antipode.asOfNowAsync("events", TIMEOUT).join()).isEqualTo(UNSAMPLED);
    primary.answer = Set.of(NOW, primary.demand());
    assertThat(Antipode.asOfNowAsync("events", TIMEOUT).join()).isEqualTo(Lineage.of(NOW));
    primary.isHanging = true;
    CompletableFuture<Lineage> hanging = Antipode.asOfNowAsync("events", Duration.ofMillis(50));
    assertThat(hanging.join()).isEqualTo(UNSAMPLED);
  }

  /** The caller stays interrupted. */
  @Test
  void whoIsInterruptedKnowsNothing() {
    primary.answer = Set.of(NOW);
    primary.isHanging = true;
    Thread.currentThread().interrupt();
    assertThat(Antipode.asOfNow("events", TIMEOUT)).isEqualTo(UNSAMPLED);
    assertThat(Thread.interrupted()).isTrue();
  }

  /** A client of a replica alone cannot be asked. */
  @Test
  void withoutAPrimaryItSaysWhatToDo() {
    assertThatThrownBy(() -> Antipode.asOfNow("unheard", TIMEOUT))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("instrument one that reaches it");
    assertThatThrownBy(() -> Antipode.asOfNow("events", Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
