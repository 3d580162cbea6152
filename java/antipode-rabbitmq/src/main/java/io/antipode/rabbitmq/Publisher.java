package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Publications;
import io.antipode.request.Recording;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Publishes one message after the other, each with its confirm. Thread-safe. */
final class Publisher {
  /** Replies with which a broker closes a channel instead of taking a message. */
  private static final int REFUSED = 403;

  private static final int NO_EXCHANGE = 404;

  private final Link link;
  private final Publications publications;
  private final String datastore;
  private final Duration timeout;
  private @Nullable Channel opened;
  private volatile boolean isReturned;

  Publisher(Link link, Publications publications, String datastore, Duration timeout) {
    this.link = link;
    this.publications = publications;
    this.datastore = datastore;
    this.timeout = timeout;
  }

  /** A message, but for the write that it names. */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares messages.
  record Message(
      String exchange,
      String key,
      boolean isMandatory,
      BasicProperties properties,
      byte[] value,
      Function<WriteId, MessageHeaders.Sent> headers) {}

  /**
   * Publishes, and returns the write once the broker has it; it enters the current scope.
   *
   * @throws IOException if the broker does not have it; where it may, the scope is marked
   */
  synchronized WriteId publish(Message message) throws IOException {
    Channel channel = link.channel();
    if (channel != opened) {
      publications.endAll();
      var ignored = channel.confirmSelect();
      channel.addReturnListener(returned -> isReturned = true);
      opened = channel;
    }
    Frame frame = Frame.of(channel);
    frame.requireSendable(message.exchange, message.key, message.properties);
    WriteId write = publications.next(message.exchange, message.key);
    send(channel, message, write, frame);
    settle(channel, write);
    Recording.recordWrite(write);
    return write;
  }

  private void send(Channel channel, Message message, WriteId write, Frame frame)
      throws IOException {
    MessageHeaders.Sent sent = frame.fitting(message.properties, message.headers.apply(write));
    if (sent == null) {
      publications.end(write);
      throw new IllegalArgumentException(
          "the properties of the message leave its lineage no room in its frame");
    }
    BasicProperties properties = message.properties.builder().headers(sent.headers()).build();
    isReturned = false;
    try (Scope sending = sent.context().makeCurrent()) {
      channel.basicPublish(
          message.exchange, message.key, message.isMandatory, properties, message.value);
    } catch (AlreadyClosedException | IllegalArgumentException error) { // Nothing was sent.
      refused(write);
      throw error;
    } catch (IOException | RuntimeException error) {
      doubt(write);
      throw error;
    }
  }

  private void settle(Channel channel, WriteId write) throws IOException {
    boolean isTaken;
    try {
      isTaken = channel.waitForConfirms(timeout.toMillis());
    } catch (ShutdownSignalException error) {
      int code = error.isHardError() ? 0 : Link.closeCode(error);
      if (code == REFUSED || code == NO_EXCHANGE) {
        refused(write);
      } else {
        doubt(write);
      }
      throw error;
    } catch (TimeoutException error) {
      doubt(write);
      throw new IOException("no confirm within " + timeout + ": the message is in doubt", error);
    } catch (InterruptedException error) {
      doubt(write);
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted before the confirm: the message is in doubt");
    }
    if (isReturned) {
      publications.end(write);
      throw new UnroutableException("no queue takes what is published with this key");
    }
    if (!isTaken) {
      doubt(write);
      throw new IOException("a queue refused the message; another may have it");
    }
  }

  /** The broker has nothing of it; the channel may count otherwise from here on. */
  private void refused(WriteId write) {
    publications.end(write);
    link.close();
  }

  /** The broker may have it; a confirm that comes later must be no other's. */
  private void doubt(WriteId write) {
    publications.end(write);
    link.close();
    Recording.markIncomplete(datastore, "in_doubt");
  }

  void close() {
    link.close();
  }
}
