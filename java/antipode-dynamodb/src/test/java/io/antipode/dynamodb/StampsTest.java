package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Stamps of one process, on a clock of the test's. */
class StampsTest {
  private static final long NOW = 1_792_800_000_000_000L;
  private static final long MINUTE = 60_000_000;

  private final AtomicLong clock = new AtomicLong(NOW);
  private final Stamps stamps = new Stamps(clock::get, 5);

  /** The layout of the specification: microseconds, process, deletion. */
  @Test
  void aStampIsWhatTheSpecificationSays() {
    assertThat(stamps.next(false, 0)).isEqualTo(NOW * 4_096 + 5 * 2);
    clock.incrementAndGet();
    assertThat(stamps.next(true, 0)).isEqualTo((NOW + 1) * 4_096 + 5 * 2 + 1);
  }

  /** A clock that stands, or goes back, still gives later stamps. */
  @Test
  void stampsIncreaseWhateverTheClockDoes() {
    long first = stamps.next(false, 0);
    long second = stamps.next(true, 0);
    clock.set(NOW - MINUTE);
    assertThat(second).isGreaterThan(first);
    assertThat(stamps.next(false, 0)).isGreaterThan(second);
  }

  /** A write is after its causes, whose clocks may be ahead; one that is wrong sets no others. */
  @Test
  void aStampIsAfterItsCauseUnlessThatIsFarAhead() {
    long cause = (NOW + MINUTE) * 4_096;
    assertThat(stamps.next(false, cause)).isGreaterThan(cause);
    long wrong = (NOW + 3 * MINUTE) * 4_096;
    assertThat(stamps.next(false, wrong)).isLessThan(wrong);
  }
}
