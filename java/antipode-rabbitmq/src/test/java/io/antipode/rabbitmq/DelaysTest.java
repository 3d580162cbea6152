package io.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Delay queues are those of Python's workers, whose names these are. */
class DelaysTest {
  private static final Map<String, Object> ARGUMENTS =
      Map.of(
          "x-queue-type", "quorum", "x-overflow", "reject-publish", "x-max-length", 5, "é", true);

  private static Delays of(String queue, Map<String, Object> arguments) {
    return new Delays(queue, 0.1, 30, arguments);
  }

  @Test
  void delaysDoubleUpToTheLongest() {
    Delays delays = of("inbox", Map.of());
    assertThat(IntStream.range(0, 11).mapToObj(number -> delays.pickMs(null, number)))
        .containsExactlyElementsOf(
            List.of(100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000));
    assertThat(delays.pickMs(Duration.ofSeconds(7), 0)).as("what a store says").isEqualTo(12800);
  }

  @Test
  void aQueueIsNamedByAllThatItIsDeclaredWith() {
    assertThat(of("inbox", Map.of()).name(100)).isEqualTo("antipode.delay.100.inbox");
    assertThat(of("inbox", ARGUMENTS).name(100)).isEqualTo("antipode.delay.100.e52d92ac.inbox");
    assertThat(of("ü".repeat(200), Map.of()).name(100))
        .isEqualTo(
            "antipode.delay.100."
                + "ü".repeat(85)
                + ".7c890d98aff62b58e72d1a46fac3c0e0766670fa731d86db2618a4706f0305ca");
  }

  @Test
  void delaysThatAreNoneAreRefused() {
    assertThatThrownBy(() -> new Delays("inbox", 2, 1, Map.of()))
        .isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(
            () -> ConsumerOptions.of("inbox", "news").withDelay(Duration.ZERO, Duration.ZERO))
        .isInstanceOf(ConfigurationException.class);
  }

  @Test
  void aQueueIsDeclaredAgainLongBeforeItExpires() {
    long[] now = {0};
    Delays.Leases leases = new Delays.Leases(() -> now[0]);
    assertThat(leases.isFresh("q")).as("never declared").isFalse();
    leases.begin("q", leases.now());
    now[0] = Delays.SPARE.toNanos() * 6 / 10;
    assertThat(List.of(leases.isFresh("q"), leases.isSure("q"))).containsExactly(false, true);
    now[0] = Delays.SPARE.toNanos();
    assertThat(leases.isSure("q")).isFalse();
  }
}
