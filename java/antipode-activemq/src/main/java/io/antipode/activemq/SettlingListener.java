package io.antipode.activemq;

import io.antipode.activemq.Outbox.Outgoing;
import io.antipode.activemq.Outbox.Pending;
import io.antipode.activemq.Outbox.Settled;
import jakarta.jms.CompletionListener;
import jakarta.jms.Message;
import org.apache.activemq.command.ActiveMQMessage;
import org.jspecify.annotations.Nullable;

/** Learns what became of a message before the application's listener does, which sees its own. */
record SettlingListener(
    CompletionListener real, Outbox outbox, Outgoing given, @Nullable Pending pending)
    implements CompletionListener {
  @Override
  public void onCompletion(Message message) {
    if (pending != null && given.settled() == Settled.LATER) {
      outbox.enter(pending);
    }
    real.onCompletion(mine(message));
  }

  @Override
  public void onException(Message message, Exception error) {
    if (pending != null && given.settled() == Settled.LATER) {
      outbox.failed(pending, error);
    }
    real.onException(mine(message), error);
  }

  private Message mine(Message sent) {
    if (sent instanceof ActiveMQMessage copy && copy != given.message()) {
      outbox.giveBack(copy, given);
    }
    return given.message();
  }
}
