package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConfirmListener;
import com.rabbitmq.client.ReturnListener;
import com.rabbitmq.client.ShutdownListener;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Publications;
import io.antipode.messages.Unconfirmed;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * The publications of one channel that the broker has not confirmed, by delivery tag. It listens
 * before the application does: who learns of a confirm has its write in the scope. Thread-safe.
 */
final class Confirms implements ConfirmListener, ReturnListener, ShutdownListener {
  private final Publications publications;
  private final ConcurrentNavigableMap<Long, Pending> pending = new ConcurrentSkipListMap<>();
  private final Unconfirmed.Connection connection = new Unconfirmed.Connection();

  /** One of them. */
  private static final class Pending {
    final Unconfirmed message;
    volatile boolean isReturned;

    Pending(Unconfirmed message) {
      this.message = message;
    }
  }

  Confirms(Publications publications) {
    this.publications = publications;
  }

  void listen(Channel channel) {
    channel.addConfirmListener(this);
    channel.addReturnListener(this);
    channel.addShutdownListener(this);
  }

  /** Returns what the channel's publications are sent over. */
  Unconfirmed.Connection connection() {
    return connection;
  }

  /** A publication is about to be sent from the current scope. */
  Unconfirmed sending(long tag, WriteId write) {
    Unconfirmed message = new Unconfirmed(write, connection);
    pending.put(tag, new Pending(message));
    return message;
  }

  /** It was not sent: the broker has nothing of it. */
  void unsent(long tag, WriteId write) {
    Pending unsent = pending.remove(tag);
    if (unsent != null) {
      unsent.message.refuse();
    }
    publications.end(write);
  }

  @Override
  public void handleAck(long tag, boolean multiple) {
    settle(tag, multiple, true);
  }

  @Override
  public void handleNack(long tag, boolean multiple) {
    settle(tag, multiple, false);
  }

  /** The broker took or refused a publication, or all up to it. */
  private synchronized void settle(long tag, boolean multiple, boolean isTaken) {
    connection.hears();
    NavigableMap<Long, Pending> settled =
        multiple ? pending.headMap(tag, true) : pending.subMap(tag, true, tag, true);
    for (Long each : settled.keySet()) {
      Pending one = pending.remove(each);
      if (one == null) {
        continue;
      }
      if (one.isReturned) {
        publications.end(one.message.write());
        one.message.refuse();
      } else if (!isTaken) {
        doubt(one);
      } else {
        one.message.confirm();
      }
    }
  }

  /** The broker routed a message nowhere; it will acknowledge it all the same. */
  @Override
  public void handleReturn(
      int code, String text, String exchange, String key, BasicProperties properties, byte[] body) {
    WriteId write;
    try {
      write = MessageHeaders.ownWrite(Texts.of(properties.getHeaders()));
    } catch (IllegalArgumentException error) {
      return; // Not one of ours.
    }
    for (Pending each : pending.values()) {
      if (each.message.write().equals(write)) {
        each.isReturned = true;
        return;
      }
    }
  }

  /** The channel is gone; a channel that recovers is another publisher. */
  @Override
  public void shutdownCompleted(ShutdownSignalException cause) {
    doubtAll();
    publications.endAll();
  }

  /**
   * What is not confirmed is in doubt: the broker may have it. Whoever returns from here finds all
   * of it marked, also what another thread was at.
   */
  synchronized void doubtAll() {
    for (Long each : pending.keySet()) {
      Pending one = pending.remove(each);
      if (one != null) {
        doubt(one);
      }
    }
  }

  /** The broker may have it, in some queues. */
  private void doubt(Pending one) {
    publications.end(one.message.write());
    one.message.doubt();
  }
}
