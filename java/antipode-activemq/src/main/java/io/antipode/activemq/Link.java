package io.antipode.activemq;

import io.antipode.barrier.UnreachableException;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.util.function.Consumer;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.transport.failover.FailoverTransport;
import org.jspecify.annotations.Nullable;

/** A connection of the library's own with one session, opened when it is needed and found dead. */
final class Link {
  private final ConnectionFactory factory;
  private final int acknowledging;
  private @Nullable Connection connection;
  private @Nullable Session session;

  /**
   * Connects to nothing yet.
   *
   * @param acknowledging a mode of sessions
   */
  Link(ConnectionFactory factory, int acknowledging) {
    this.factory = factory;
    this.acknowledging = acknowledging;
  }

  /** Returns the session; whether it is the one of the last call is known by its identity. */
  synchronized Session session() {
    Session held = session;
    return held != null ? held : open(why -> {});
  }

  /**
   * Opens another session.
   *
   * @param lost takes why the connection is gone, once that is so
   * @throws UnreachableException if there is no connection
   */
  synchronized Session open(Consumer<String> lost) {
    close();
    try {
      Connection made = factory.createConnection();
      connection = made;
      reportLoss(made);
      made.setExceptionListener(
          error -> {
            drop(made);
            lost.accept(describe(error));
          });
      made.start();
      Session opened = made.createSession(false, acknowledging);
      session = opened;
      return opened;
    } catch (JMSException error) {
      close();
      throw new UnreachableException("no broker of ActiveMQ: " + describe(error), error);
    }
  }

  /**
   * Lets a connection by {@code failover:} end with its broker: what passes until it is back is not
   * heard, and nobody is to wait for that within a call. The next one is opened here.
   */
  private static void reportLoss(Connection made) {
    @Nullable FailoverTransport transport =
        made instanceof ActiveMQConnection own
            ? own.getTransport().narrow(FailoverTransport.class)
            : null;
    if (transport != null) {
      transport.setStartupMaxReconnectAttempts(0);
      transport.setMaxReconnectAttempts(0);
    }
  }

  /** Returns an error in a line: many have no text, or wrap another. */
  static String describe(Throwable error) {
    Throwable told =
        error.getMessage() == null && error.getCause() != null ? error.getCause() : error;
    return told.getMessage() == null ? told.getClass().getSimpleName() : told.getMessage();
  }

  /** Uses a connection that is dead no more; the next one closes it. */
  private synchronized void drop(Connection dead) {
    if (connection == dead) {
      session = null;
    }
  }

  /** Closes the connection; may be called again. */
  void close() {
    Connection held;
    synchronized (this) {
      held = connection;
      connection = null;
      session = null;
    }
    if (held != null) {
      try {
        held.close();
      } catch (JMSException error) {
        // It was dead.
      }
    }
  }
}
