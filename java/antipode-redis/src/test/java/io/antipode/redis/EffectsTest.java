package io.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.redis.Commands.Kind;
import io.lettuce.core.TransactionResult;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.stream.Stream;
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

  /** Returns what Lettuce makes of the reply to an {@code EXEC}. */
  private static Object executed(boolean wasDiscarded, Object... answers) {
    return Proxy.newProxyInstance(
        EffectsTest.class.getClassLoader(),
        new Class<?>[] {TransactionResult.class},
        (proxy, method, args) ->
            method.getName().equals("wasDiscarded") ? wasDiscarded : Stream.of(answers));
  }

  /** A watched key changed, or a command was refused: nothing was done. */
  @Test
  void aTransactionThatWasAbortedWroteNothing() {
    List<Kind> writes = List.of(Kind.WRITE);
    Exception aborted = new IllegalStateException("EXECABORT");
    for (Object answer : new Object[] {aborted, executed(true)}) {
      assertThat(Effects.ofAll(writes, Traffic.answers(answer))).isEqualTo(Kind.NEITHER);
      assertThat(Effects.ofAll(writes, JedisTraffic.answers(answer))).isEqualTo(Kind.NEITHER);
    }
    assertThat(Effects.ofAll(writes, Traffic.answers(null))).isEqualTo(Kind.NEITHER);
    assertThat(Effects.ofAll(writes, JedisTraffic.answers(null))).isEqualTo(Kind.NEITHER);
    Object done = executed(false, "OK");
    assertThat(Effects.ofAll(writes, Traffic.answers(done))).isEqualTo(Kind.WRITE);
    assertThat(Effects.ofAll(writes, JedisTraffic.answers(List.of("OK")))).isEqualTo(Kind.WRITE);
  }
}
