package io.antipode.messages;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.Shims;
import io.antipode.barrier.UnreachableException;
import io.antipode.runtime.Time;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A broker as one process sees it. With receipts barriers wait for what they show; without them
 * messages are reported by barriers, and never waited for.
 */
public abstract class ReceiptsShim extends Shim {
  /** What receipts show; null without them. */
  protected final @Nullable Ledger ledger;

  /**
   * Makes what a builder describes.
   *
   * @param gapAge after which what may have been missed counts as missed; null without receipts
   */
  protected ReceiptsShim(ShimBuilder<?, ?> builder, @Nullable Duration gapAge) {
    super(builder);
    this.ledger = gapAge == null ? null : new Ledger(gapAge, System::nanoTime, Time::now);
  }

  /** Returns what listens to the broker; null where only what this process receives is seen. */
  protected abstract @Nullable ReconnectingTap tap();

  @Override
  public final boolean isWaitable() {
    return ledger != null;
  }

  @Override
  public final boolean canPoll() {
    return ledger != null;
  }

  @Override
  public final boolean pollsForPromises() {
    return ledger != null;
  }

  @Override
  public final Endpoint openEndpoint(Duration timeout) {
    if (ledger == null) {
      throw new UnreachableException("'" + datastore() + "' has no receipts");
    }
    return new ReceiptsEndpoint(ledger, tap());
  }

  /** Learns of a message that this process received, and returns what it says of itself. */
  protected final MessageHeaders.Received received(@Nullable Map<String, Object> headers) {
    MessageHeaders.Received message = MessageHeaders.received(headers, datastore());
    learn(headers, message);
    return message;
  }

  /** Lets all shims of a datastore learn of a message, and returns what it says of itself. */
  public static MessageHeaders.Received received(
      @Nullable Map<String, Object> headers, String datastore) {
    MessageHeaders.Received message = MessageHeaders.received(headers, datastore);
    for (Shim shim : Shims.of(datastore)) {
      if (shim instanceof ReceiptsShim broker) {
        broker.learn(headers, message);
      }
    }
    return message;
  }

  private void learn(@Nullable Map<String, Object> headers, MessageHeaders.Received message) {
    if (ledger != null) {
      Heard.received(ledger, headers, message, datastore());
    }
  }

  @Override
  public void close() {
    super.close();
    ReconnectingTap listening = tap();
    if (listening != null) {
      listening.close();
    }
  }
}
