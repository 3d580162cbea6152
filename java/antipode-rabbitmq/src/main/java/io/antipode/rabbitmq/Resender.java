package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.ConfigurationException;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Publishes messages again, as they are, on a channel of the library's own: confirmed and
 * mandatory. When a call returns, a queue of the broker has the message.
 */
final class Resender {
  /** A queue may have expired or been deleted just before a publication; not again and again. */
  private static final int TRIES = 3;

  private static final long CONFIRM_MS = 30_000;

  private final Connection connection;
  private final Delays.Leases leases = new Delays.Leases(System::nanoTime);
  private @Nullable Channel channel;
  private volatile boolean isReturned;

  Resender(Connection connection) {
    this.connection = connection;
  }

  /**
   * Puts a message into a delay queue.
   *
   * @throws ConfigurationException if the broker refuses the queue or the message for good
   * @throws IOException as the client does; the message may be in the queue or not
   */
  void defer(Delays delays, int delayMs, BasicProperties properties, byte[] body)
      throws IOException, InterruptedException {
    String name = delays.name(delayMs);
    for (int tries = 0; tries < TRIES; tries++) {
      if (!leases.isFresh(name)) {
        long at = leases.now();
        declare(name, delays.declared(delayMs));
        leases.begin(name, at);
      }
      if (isRouted(name, properties, body) && leases.isSure(name)) {
        return;
      }
      // Not routed, or confirmed so late that the queue may be gone: a second copy is better.
      leases.end(name);
    }
    throw vanishing(name);
  }

  /**
   * Puts a message into a queue, which is declared durable where there is none.
   *
   * @throws ConfigurationException if the broker refuses it for good
   * @throws IOException as the client does; the message may be in the queue or not
   */
  void bury(String name, BasicProperties properties, byte[] body)
      throws IOException, InterruptedException {
    for (int tries = 0; tries < TRIES; tries++) {
      if (isRouted(name, properties, body)) {
        return;
      }
      declare(name, Map.of());
    }
    throw vanishing(name);
  }

  /** Closes the channel; may be called again. */
  void close() {
    Channel held = channel;
    channel = null;
    if (held != null) {
      try {
        held.abort();
      } catch (IOException gone) {
        // With its connection.
      }
    }
  }

  private void declare(String name, Map<String, Object> arguments) throws IOException {
    try {
      var ignored = opened().queueDeclare(name, true, false, false, arguments);
    } catch (IOException | ShutdownSignalException error) {
      close();
      throw explained(name, error);
    }
  }

  /**
   * Publishes where nothing of this moment is current: instrumentations find no baggage that they
   * would add to the message, which keeps its own.
   */
  private boolean isRouted(String name, BasicProperties properties, byte[] body)
      throws IOException, InterruptedException {
    boolean isTaken;
    try (Scope nothing = Context.root().makeCurrent()) {
      Channel opened = opened();
      isReturned = false;
      opened.basicPublish("", name, true, properties, body);
      isTaken = opened.waitForConfirms(CONFIRM_MS);
    } catch (IOException | ShutdownSignalException error) {
      close();
      throw explained(name, error);
    } catch (TimeoutException error) {
      close(); // A confirm that comes later must be no other's.
      throw new IOException("the broker does not confirm what was put into " + name, error);
    } catch (InterruptedException error) {
      close();
      throw error;
    }
    if (!isTaken) {
      throw new IOException("the queue " + name + " refused a message");
    }
    return !isReturned;
  }

  private Channel opened() throws IOException {
    Channel held = channel;
    if (held != null && held.isOpen()) {
      return held;
    }
    Channel opened = connection.createChannel();
    if (opened == null) {
      throw new IOException("the connection has no channel left");
    }
    var ignored = opened.confirmSelect();
    opened.addReturnListener(returned -> isReturned = true);
    channel = opened;
    return opened;
  }

  /** Says of what the broker will never take that it is a mistake of the set-up. */
  private static IOException explained(String name, Exception error) {
    ShutdownSignalException signal = signal(error);
    if (signal != null && !signal.isHardError() && !signal.isInitiatedByApplication()) {
      throw new ConfigurationException(
          "the broker refuses the queue '"
              + name
              + "' or what was published to it: "
              + Link.describe(error)
              + ". The user needs permission to configure, write and read queues named"
              + " 'antipode.*' and to write to the default exchange; to defer messages with the"
              + " property user_id of others also the tag 'impersonator'");
    }
    return error instanceof IOException same ? same : new IOException(error);
  }

  private static @Nullable ShutdownSignalException signal(Exception error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof ShutdownSignalException signal) {
        return signal;
      }
    }
    return null;
  }

  private static ConfigurationException vanishing(String name) {
    return new ConfigurationException(
        "the queue '" + name + "' is gone again whenever it was declared");
  }
}
