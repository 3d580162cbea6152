package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.ConfigurationException;
import io.antipode.barrier.UnreachableException;
import java.io.IOException;
import java.net.URISyntaxException;
import java.security.KeyManagementException;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** A connection of the library's own with one channel, opened when it is needed and found dead. */
final class Link {
  /** For each step of a connection: a broker that does not answer is noticed after it. */
  private static final int CONNECT_MS = 5_000;

  /** Replies with which a broker refuses a user or a virtual host for good. */
  private static final int REFUSED = 403;

  private static final int NOT_ALLOWED = 530;

  private final ConnectionFactory factory;
  private final String name;
  private @Nullable Connection connection;
  private @Nullable Channel channel;

  Link(ConnectionFactory factory, String name) {
    this.factory = own(factory);
    this.name = name;
  }

  /** Returns the connections of a URL. */
  static ConnectionFactory factory(String url) {
    ConnectionFactory factory = new ConnectionFactory();
    try {
      factory.setUri(url);
    } catch (URISyntaxException
        | NoSuchAlgorithmException
        | KeyManagementException
        | IllegalArgumentException error) {
      // The URL itself may hold a password: it is not repeated.
      throw new ConfigurationException(
          "the broker's URL is malformed ("
              + error.getClass().getSimpleName()
              + "): amqp://user@host/vhost");
    }
    return factory;
  }

  /** Connections open again when they are needed; their threads keep no program alive. */
  private static ConnectionFactory own(ConnectionFactory given) {
    ConnectionFactory factory = given.clone();
    factory.setAutomaticRecoveryEnabled(false);
    factory.setConnectionTimeout(CONNECT_MS);
    factory.setHandshakeTimeout(CONNECT_MS);
    factory.setChannelRpcTimeout(CONNECT_MS);
    factory.setThreadFactory(
        task -> {
          Thread thread = new Thread(task, "antipode-rabbitmq");
          thread.setDaemon(true);
          return thread;
        });
    return factory;
  }

  /** Lets a dead connection be noticed after twice this time. */
  Link heartbeat(int seconds) {
    factory.setRequestedHeartbeat(seconds);
    return this;
  }

  /** Returns the channel; whether it is the one of the last call is known by its identity. */
  synchronized Channel channel() throws IOException {
    Channel held = channel;
    return held != null && held.isOpen() ? held : open();
  }

  private Channel open() throws IOException {
    close();
    Connection made = connect();
    connection = made;
    Channel opened = made.createChannel();
    if (opened == null) {
      throw new UnreachableException("the broker at " + place() + " has no channel left");
    }
    channel = opened;
    return opened;
  }

  private Connection connect() {
    try {
      return factory.newConnection(name);
    } catch (PossibleAuthenticationFailureException error) {
      throw refusal(error);
    } catch (IOException | TimeoutException | ShutdownSignalException error) {
      if (isRefusal(error)) {
        throw refusal(error);
      }
      throw new UnreachableException("no broker at " + place() + ": " + describe(error), error);
    }
  }

  private static boolean isRefusal(Throwable error) {
    int code = closeCode(error);
    return code == REFUSED || code == NOT_ALLOWED;
  }

  private ConfigurationException refusal(Exception error) {
    return new ConfigurationException(
        "the broker at " + place() + " refuses the user or the virtual host: " + describe(error));
  }

  /** Returns the code with which a broker closed a connection or a channel; 0 for none. */
  static int closeCode(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof ShutdownSignalException signal) {
        if (signal.getReason() instanceof AMQP.Channel.Close close) {
          return close.getReplyCode();
        }
        if (signal.getReason() instanceof AMQP.Connection.Close close) {
          return close.getReplyCode();
        }
      }
    }
    return 0;
  }

  /** Returns an error in a line: many have no text, or wrap another. */
  static String describe(Throwable error) {
    Throwable told =
        error.getMessage() == null && error.getCause() != null ? error.getCause() : error;
    return told.getMessage() == null ? told.getClass().getSimpleName() : told.getMessage();
  }

  private String place() {
    return factory.getHost() + ":" + factory.getPort();
  }

  /** Closes the connection; may be called again. */
  synchronized void close() {
    Connection held = connection;
    connection = null;
    channel = null;
    if (held != null) {
      held.abort(CONNECT_MS);
    }
  }
}
