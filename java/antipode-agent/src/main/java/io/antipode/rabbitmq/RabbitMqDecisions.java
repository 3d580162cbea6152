package io.antipode.rabbitmq;

import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.messages.Ledger;
import io.antipode.messages.MessageHeaders;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** What receipts say of publications, at moments that a script states: next to what decides it. */
public final class RabbitMqDecisions {
  private static final Instant START = Instant.ofEpochSecond(1_800_000_000L);
  private static final Duration GAP_AGE = Duration.ofSeconds(5);

  private Duration passed = Duration.ZERO;
  private final Ledger ledger =
      new Ledger(GAP_AGE, () -> passed.toNanos(), () -> START.plus(passed));

  /** Makes a process that begins to listen. */
  public RabbitMqDecisions() {}

  /** Says how much time has passed since then. */
  public void at(Duration time) {
    passed = time;
  }

  /** A write was routed in this region. */
  public void see(WriteId write) {
    ledger.see(write);
  }

  /** Listening began again. */
  public void listening() {
    ledger.listening();
  }

  /** This process received a write, which depends on those of its publisher up to this one. */
  public void deliver(WriteId write, long after) {
    ledger.deliver(write, after);
  }

  /** A message was routed that fulfils a promise. */
  public void fulfil(Promise promise) {
    ledger.fulfil(promise);
  }

  /** Returns what is known of a promise. */
  public Status shows(Promise promise) {
    return ledger.judge(promise).status();
  }

  /** Returns what the consumer of a message depends on. */
  public static Lineage lineage(Map<String, Object> headers) {
    return MessageHeaders.received(headers, "posts").lineage();
  }

  /** Returns what is known of a write. */
  public Status shows(WriteId write) {
    return ledger.judge(write).status();
  }
}
