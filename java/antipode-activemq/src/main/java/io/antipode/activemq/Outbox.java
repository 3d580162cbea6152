package io.antipode.activemq;

import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Publications;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import org.apache.activemq.command.ActiveMQMessage;
import org.jspecify.annotations.Nullable;

/** The messages of one session of which it is not known yet whether the broker has them. */
final class Outbox {
  private final ActiveMqInstrumentation instrumentation;
  private final String datastore;
  private final Publications publications;
  private final List<Pending> uncommitted = new ArrayList<>();

  Outbox(ActiveMqInstrumentation instrumentation) {
    this.instrumentation = instrumentation;
    this.datastore = instrumentation.datastore();
    this.publications = new Publications(datastore, false);
  }

  /** One of them, the scope that it enters, and the line that sent it. */
  record Pending(WriteId write, @Nullable Scope scope, @Nullable StackTraceElement site) {
    static Pending of(WriteId write) {
      return new Pending(write, Scope.currentOrNull(), Recording.callSite());
    }
  }

  /** How it becomes known whether the broker has a message. */
  enum Settled {
    /** The call returns once the broker has it. */
    CONFIRMED,
    /** The application's listener is called. */
    LATER,
    /** The session is committed. */
    COMMITTED,
    /** A transaction manager commits, of which nothing is seen. */
    ELSEWHERE,
    /** It does not. */
    NEVER
  }

  /**
   * A message as the application sends it.
   *
   * @param further properties that its producer adds
   */
  record Outgoing(
      Message message,
      @Nullable Destination destination,
      boolean isPersistent,
      Settled settled,
      Map<String, Object> further) {}

  /** The client's call. */
  interface Call {
    /** Sends a message; what is pending of it is known by its own listener where it has one. */
    @Nullable Object send(Message message, @Nullable Pending pending, MessageHeaders.Sent headers)
        throws Throwable;
  }

  /** Sends a message with what it depends on. Results and errors are the client's. */
  @Nullable Object send(Outgoing given, Call call) throws Throwable {
    if (Scope.currentOrNull() == null && Settings.current().onUnscoped() == Policy.RAISE) {
      Recording.unscoped("write", datastore, Policy.RAISE);
    }
    Destination destination = given.destination;
    if (destination == null) { // The client refuses it, or the message.
      return call.send(given.message, null, MessageHeaders.plain(null));
    }
    WriteId write = named(given, destination);
    ActiveMQMessage copy;
    MessageHeaders.Sent headers;
    try {
      copy = MessageProperties.copy(given.message);
      Map<String, Object> had = MessageProperties.of(copy);
      had.putAll(given.further);
      had.keySet().retainAll(MessageHeaders.NAMES);
      MessageHeaders.Sent all = MessageHeaders.outgoing(had, write, datastore);
      headers = MessageProperties.put(copy, destination, given.further, all);
    } catch (JMSException | RuntimeException error) {
      leftOut(write, error.toString());
      return call.send(given.message, null, MessageHeaders.plain(null));
    }
    if (headers == null) {
      leftOut(write, "its properties have no room for it");
    }
    Pending pending = write == null || headers == null ? null : Pending.of(write);
    return sent(given, copy, pending, headers, call);
  }

  private @Nullable Object sent(
      Outgoing given,
      ActiveMQMessage copy,
      @Nullable Pending pending,
      MessageHeaders.@Nullable Sent headers,
      Call call)
      throws Throwable {
    MessageHeaders.Sent sent = headers == null ? MessageHeaders.plain(null) : headers;
    Object result;
    try (io.opentelemetry.context.Scope within = sent.context().makeCurrent()) {
      result = call.send(copy, pending, sent);
    } catch (Throwable error) {
      if (pending != null) {
        failed(pending, error);
      }
      throw error;
    }
    if (given.settled != Settled.LATER) {
      giveBack(copy, given);
    }
    if (pending != null) {
      sent(pending, given.settled);
    }
    return result;
  }

  private void sent(Pending pending, Settled settled) {
    switch (settled) {
      case COMMITTED -> {
        synchronized (uncommitted) {
          uncommitted.add(pending);
        }
      }
      case LATER -> {}
      default -> enter(pending);
    }
  }

  /** Gives the application's message what sending set; what fails after that is no error of it. */
  void giveBack(ActiveMQMessage copy, Outgoing given) {
    try {
      MessageProperties.giveBack(copy, given.message, given.further);
    } catch (JMSException | RuntimeException error) {
      Counts.LOG.log(Level.FINE, "a message does not take what sending it set", error);
    }
  }

  /**
   * Returns the name of the next message; null for one that nobody can wait for, or of which
   * nothing will be known.
   */
  private @Nullable WriteId named(Outgoing given, Destination destination) {
    if (!MessageProperties.isHeard(destination)) {
      Counts.count("unheard_publish", datastore);
      return null;
    }
    if (given.settled == Settled.NEVER || given.settled == Settled.ELSEWHERE) {
      Counts.count("unconfirmed_publish", datastore);
      if (!instrumentation.hasReceipts()) {
        return null;
      }
      if (given.settled == Settled.ELSEWHERE) {
        Recording.markIncomplete(datastore, "in_doubt");
        return null;
      }
    }
    if (!given.isPersistent) {
      Counts.logOnce(
          "not_persistent",
          datastore,
          "send",
          () ->
              "messages of '" + datastore + "' are not persistent: a broker that dies loses them");
    }
    return publications.next(destination.toString(), "");
  }

  private void leftOut(@Nullable WriteId write, String why) {
    Counts.count("baggage_dropped", datastore);
    Counts.logOnce(
        "baggage_dropped",
        datastore,
        "frame",
        () -> "a message to '" + datastore + "' was sent without its lineage: " + why);
    Recording.markIncomplete(datastore, write == null ? "size" : "unsampled");
    if (write != null) {
      publications.end(write);
    }
  }

  // What becomes of it.

  /** The broker has it. */
  void enter(Pending pending) {
    Scope scope = pending.scope;
    Runnable entered =
        scope != null
            ? () -> scope.append(pending.write)
            : () -> Recording.unscoped("write", datastore, null);
    CallSite.handle(pending.site, entered);
  }

  /** The call failed, or its listener says that it did. */
  void failed(Pending pending, Throwable error) {
    if (Failures.isUnsent(error)) {
      refused(pending);
    } else {
      doubt(pending);
    }
  }

  /** The broker does not have it. */
  private void refused(Pending pending) {
    publications.end(pending.write);
  }

  /** The broker may have it. */
  private void doubt(Pending pending) {
    publications.end(pending.write);
    Counts.count("incomplete", datastore);
    if (pending.scope != null) {
      pending.scope.markIncomplete(datastore, "in_doubt");
    }
  }

  /** The session was committed. */
  void committed() {
    taken().forEach(this::enter);
  }

  /** The session was rolled back or closed. */
  void rolledBack() {
    taken().forEach(this::refused);
  }

  /** Nobody knows whether the session was committed. */
  void inDoubt() {
    taken().forEach(this::doubt);
  }

  private List<Pending> taken() {
    synchronized (uncommitted) {
      List<Pending> all = List.copyOf(uncommitted);
      uncommitted.clear();
      return all;
    }
  }
}
