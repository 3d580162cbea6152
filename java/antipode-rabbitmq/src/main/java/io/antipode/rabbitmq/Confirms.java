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
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * The publications of one channel that the broker has not confirmed, by delivery tag. It listens
 * before the application does: who learns of a confirm has its write in the scope. Thread-safe.
 */
final class Confirms implements ConfirmListener, ReturnListener, ShutdownListener {
  private final Publications publications;
  private final String datastore;
  private final ConcurrentNavigableMap<Long, Pending> pending = new ConcurrentSkipListMap<>();

  /** One of them, and the scope that it enters. */
  private static final class Pending {
    final WriteId write;
    final @Nullable Scope scope;

    /** The line that published it, if somebody asks for it. */
    final @Nullable StackTraceElement site = Recording.callSite();

    volatile boolean isReturned;

    Pending(WriteId write, @Nullable Scope scope) {
      this.write = write;
      this.scope = scope;
    }

    void enter() {
      if (scope != null) {
        CallSite.handle(site, () -> scope.append(write));
      }
    }
  }

  Confirms(Publications publications, String datastore) {
    this.publications = publications;
    this.datastore = datastore;
  }

  void listen(Channel channel) {
    channel.addConfirmListener(this);
    channel.addReturnListener(this);
    channel.addShutdownListener(this);
  }

  /** A publication is about to be sent from the current scope. */
  void sending(long tag, WriteId write) {
    pending.put(tag, new Pending(write, Scope.currentOrNull()));
  }

  /** It was not sent: the broker has nothing of it. */
  void unsent(long tag, WriteId write) {
    pending.remove(tag);
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
    NavigableMap<Long, Pending> settled =
        multiple ? pending.headMap(tag, true) : pending.subMap(tag, true, tag, true);
    for (Long each : settled.keySet()) {
      Pending one = pending.remove(each);
      if (one == null) {
        continue;
      }
      if (one.isReturned) {
        publications.end(one.write);
      } else if (!isTaken) {
        doubt(one);
      } else {
        one.enter();
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
    for (Map.Entry<Long, Pending> each : pending.entrySet()) {
      if (each.getValue().write.equals(write)) {
        each.getValue().isReturned = true;
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
    publications.end(one.write);
    Counts.count("incomplete", datastore);
    if (one.scope != null) {
      one.scope.markIncomplete(datastore, "in_doubt");
    }
  }
}
