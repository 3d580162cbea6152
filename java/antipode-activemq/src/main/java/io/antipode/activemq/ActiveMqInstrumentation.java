package io.antipode.activemq;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Lineage;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.ReceiptsShim;
import io.antipode.messages.UnwaitableShim;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.KillSwitch;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lets the application's own connections carry lineages: in the properties of what they send, in
 * the listeners with which they consume. A value; how a datastore is used is said once.
 *
 * <pre>{@code
 * ActiveMqInstrumentation news = ActiveMqInstrumentation.of("news");
 * ConnectionFactory factory = news.instrument(new ActiveMQConnectionFactory(url));
 * }</pre>
 */
public final class ActiveMqInstrumentation {
  private final String datastore;
  private final boolean hasReceipts;

  private ActiveMqInstrumentation(String datastore, boolean hasReceipts) {
    this.datastore = datastore;
    this.hasReceipts = hasReceipts;
  }

  /**
   * Returns the instrumentation of a datastore.
   *
   * @param datastore the name that every service gives to this broker
   */
  public static ActiveMqInstrumentation of(String datastore) {
    if (Objects.requireNonNull(datastore, "datastore").isEmpty()) {
      throw new ConfigurationException(
          "a datastore's name is not empty, and every service spells it alike");
    }
    return new ActiveMqInstrumentation(datastore, false);
  }

  /**
   * Returns this one for readers that have receipts: messages that the broker does not confirm
   * enter the lineage, too. Implied where this process has receipts.
   */
  public ActiveMqInstrumentation withReceipts() {
    return new ActiveMqInstrumentation(datastore, true);
  }

  /** Returns the name of the datastore. */
  public String datastore() {
    return datastore;
  }

  /**
   * Instruments a factory: all connections and contexts that it makes are. Give this to a pool or
   * to Spring's {@code CachingConnectionFactory}, which then keep what is instrumented.
   */
  public ConnectionFactory instrument(ConnectionFactory factory) {
    Objects.requireNonNull(factory, "factory");
    return KillSwitch.isDisabled() ? factory : (ConnectionFactory) instrumented(factory);
  }

  /**
   * Instruments a connection: all sessions that it opens are. What they send to a topic enters the
   * current scope: once the broker has it, or the session is committed. Listeners run in a scope of
   * their message; what {@code receive} returns is merged into the current scope, where there is
   * one.
   */
  public Connection instrument(Connection connection) {
    Objects.requireNonNull(connection, "connection");
    return KillSwitch.isDisabled() ? connection : (Connection) instrumented(connection);
  }

  /** Returns a listener that handles each message in a scope of its own. */
  public MessageListener instrument(MessageListener listener) {
    Objects.requireNonNull(listener, "listener");
    return KillSwitch.isDisabled() || listener instanceof ScopedListener
        ? listener
        : new ScopedListener(listener, this);
  }

  /**
   * Instruments what a factory has made, for a proxy of it that a framework makes: a connection or
   * a context; anything else as it is.
   *
   * @param factory that made it
   */
  public @Nullable Object instrumentMade(@Nullable Object made, ConnectionFactory factory) {
    if (KillSwitch.isDisabled()) {
      return made;
    }
    UnwaitableShim.registerUnlessKnown(datastore);
    return InstrumentedOrigin.made(made, this, Confirms.of(factory, Confirms.DEFAULT));
  }

  private Object instrumented(Object origin) {
    UnwaitableShim.registerUnlessKnown(datastore);
    return InstrumentedOrigin.of(origin, this, Confirms.DEFAULT);
  }

  /**
   * Opens the scope of a consumed message, for what is consumed otherwise than by the listener of
   * an instrumented session. It holds what the message depends on and the message itself; a barrier
   * in it waits for its causes.
   */
  public ScopeBlock message(Message message) {
    Map<String, Object> headers = MessageProperties.of(message);
    ScopeBlock block = Antipode.scope(lineage(headers));
    if (!MessageHeaders.hasLineage(headers)) {
      Recording.recordUnlabelled(block.scope(), datastore);
    }
    return block;
  }

  /**
   * Returns what the consumer of a message depends on, the message itself included, which this
   * process has received: for what handles several messages at once, or merges them.
   */
  public Lineage lineage(Message message) {
    return lineage(MessageProperties.of(message));
  }

  private Lineage lineage(Map<String, Object> headers) {
    return ReceiptsShim.received(headers, datastore).lineage();
  }

  /** Returns whether readers of the datastore can know what reached them. */
  boolean hasReceipts() {
    return hasReceipts || Shims.of(datastore).stream().anyMatch(Shim::isWaitable);
  }
}
