package io.antipode.messages;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.barrier.Status;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What receipts forget; what they say otherwise is in the vectors. */
class LedgerTest {
  /** More than are remembered. */
  private static final int MANY = 5_000;

  private static final Instant BEGAN = Instant.ofEpochSecond(1_000);
  private static final Instant BORN = BEGAN.plusSeconds(500);

  private Instant now = BEGAN;

  private static WriteId first(String publisher) {
    return WriteId.of("news", publisher, 1);
  }

  /** A publisher that was forgotten is no new one, although it began while this one listened. */
  @Test
  void aPublisherThatWasForgottenIsNoNewOne() {
    Ledger ledger = new Ledger(Duration.ofSeconds(5), () -> 0, () -> now);
    now = BEGAN.plusSeconds(1_000);
    List<WriteId> seen = new ArrayList<>();
    for (int number = 0; number < MANY; number++) {
      WriteId write = first(Publications.newPublisher(BORN.toEpochMilli()));
      seen.add(write);
      ledger.see(write);
    }
    assertThat(ledger.judge(seen.get(0)).status()).isEqualTo(Status.UNKNOWN_LOG);
    assertThat(ledger.judge(seen.get(MANY - 1)).status()).isEqualTo(Status.VISIBLE);
    WriteId younger = first(Publications.newPublisher(now.toEpochMilli()));
    assertThat(ledger.judge(younger).status()).isEqualTo(Status.NOT_YET);
  }
}
