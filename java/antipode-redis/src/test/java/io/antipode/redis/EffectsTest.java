package io.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.redis.Commands.Kind;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What commands did, as their replies say. */
class EffectsTest {
  private static final String NO_SCRIPT = "NOSCRIPT No matching script.";

  /** A script that failed may have written before that; one that is not there did nothing. */
  @Test
  void aScriptThatFailedMayHaveWritten() {
    assertThat(Effects.of(Kind.UNKNOWN, null)).isEqualTo(Kind.UNKNOWN);
    assertThat(Effects.of(Kind.UNKNOWN, "ERR oops")).isEqualTo(Kind.UNKNOWN);
    assertThat(Effects.of(Kind.UNKNOWN, NO_SCRIPT)).isEqualTo(Kind.NEITHER);
    assertThat(Effects.of(Kind.WRITE, "OOM")).isEqualTo(Kind.NEITHER);
  }

  /** The refusal of one command of several says nothing of the others. */
  @Test
  void aRefusalSaysNothingOfOtherCommands() {
    List<Kind> writes = List.of(Kind.WRITE, Kind.WRITE);
    Exception refused = new IllegalStateException("OOM");
    assertThat(Effects.ofAll(writes, List.of(refused, "OK"))).isEqualTo(Kind.WRITE);
    assertThat(Effects.ofAll(writes, List.of("OK", refused))).isEqualTo(Kind.WRITE);
    assertThat(Effects.ofAll(writes, List.of(refused, refused))).isEqualTo(Kind.NEITHER);
    assertThat(Effects.ofAll(writes, List.of("OK"))).isEqualTo(Kind.UNKNOWN);
  }
}
