package io.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Lineage;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.ReceiptsShim;
import io.antipode.messages.UnwaitableShim;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.KillSwitch;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lets the application's own connections and channels carry lineages: in the headers that they
 * publish, in the callbacks that they consume with. A value; how a datastore is used is said once.
 *
 * <pre>{@code
 * RabbitMqInstrumentation news = RabbitMqInstrumentation.of("news");
 * Connection connection = news.instrument(factory.newConnection());
 * }</pre>
 */
public final class RabbitMqInstrumentation {
  private final String datastore;
  private final boolean hasReceipts;
  private final @Nullable String exchange;
  private final boolean byRoutingKey;

  private RabbitMqInstrumentation(
      String datastore, boolean hasReceipts, @Nullable String exchange, boolean byRoutingKey) {
    this.datastore = datastore;
    this.hasReceipts = hasReceipts;
    this.exchange = exchange;
    this.byRoutingKey = byRoutingKey;
  }

  /**
   * Returns the instrumentation of a datastore.
   *
   * @param datastore the name that every service gives to this exchange or broker
   */
  public static RabbitMqInstrumentation of(String datastore) {
    if (Objects.requireNonNull(datastore, "datastore").isEmpty()) {
      throw new ConfigurationException(
          "a datastore's name is not empty, and every service spells it alike");
    }
    return new RabbitMqInstrumentation(datastore, false, null, false);
  }

  /**
   * Returns this one for readers that have receipts: publications without confirms enter the
   * lineage, too. Implied where this process has receipts.
   */
  public RabbitMqInstrumentation withReceipts() {
    return new RabbitMqInstrumentation(datastore, true, exchange, byRoutingKey);
  }

  /**
   * Returns this one for receipts that listen to an exchange. What is published to another one
   * carries the lineage and enters none. By default it is that of the receipts in this process;
   * without them every one but the default exchange, of which no tap hears.
   */
  public RabbitMqInstrumentation withExchange(String heard) {
    return new RabbitMqInstrumentation(
        datastore, hasReceipts, Objects.requireNonNull(heard, "heard"), byRoutingKey);
  }

  /** Returns this one for readers whose receipts listen to single routing keys. */
  public RabbitMqInstrumentation withSequenceByRoutingKey() {
    return new RabbitMqInstrumentation(datastore, hasReceipts, exchange, true);
  }

  /** Returns the name of the datastore. */
  public String datastore() {
    return datastore;
  }

  /** Instruments a connection: all channels that it opens are, and it does what it did. */
  public Connection instrument(Connection connection) {
    Objects.requireNonNull(connection, "connection");
    if (KillSwitch.isDisabled()) {
      return connection;
    }
    register();
    return InstrumentedConnection.of(connection, this);
  }

  /**
   * Instruments a channel, before it is used. What it publishes enters the current scope once the
   * broker has confirmed it, so that it should be in confirm mode; the callbacks with which it
   * consumes run in a scope of their message; what {@code basicGet} returns is merged into the
   * current scope, where there is one.
   */
  public Channel instrument(Channel channel) {
    Objects.requireNonNull(channel, "channel");
    if (KillSwitch.isDisabled()) {
      return channel;
    }
    register();
    return InstrumentedChannel.of(channel, this);
  }

  /** A datastore without receipts is known all the same. */
  void register() {
    UnwaitableShim.registerUnlessKnown(datastore);
  }

  /**
   * Opens the scope of a consumed message, for what is consumed otherwise than by the callbacks of
   * an instrumented channel. It holds what the message depends on and the message itself; a barrier
   * in it waits for its causes.
   *
   * @param headers of the message; null where it has none
   */
  public ScopeBlock message(@Nullable Map<String, Object> headers) {
    ScopeBlock block = Antipode.scope(lineage(headers));
    began(block.scope(), headers);
    return block;
  }

  /**
   * Notes that a scope begins with what the consumer of a message depends on: a dry run reports
   * messages without a lineage. For what opens a scope otherwise than by {@link #message}.
   *
   * @param headers of the message; null where it has none
   */
  public void began(Scope scope, @Nullable Map<String, Object> headers) {
    if (!MessageHeaders.hasLineage(Texts.of(headers))) {
      Recording.recordUnlabelled(scope, datastore);
    }
  }

  /**
   * Returns what the consumer of a message depends on, the message itself included, which this
   * process has received: for what handles several messages at once, or merges them.
   *
   * @param headers of the message; null where it has none
   */
  public Lineage lineage(@Nullable Map<String, Object> headers) {
    return ReceiptsShim.received(Texts.of(headers), datastore).lineage();
  }

  boolean isByRoutingKey() {
    return byRoutingKey;
  }

  /** Returns whether readers of the datastore can know what was routed to them. */
  boolean hasReceipts() {
    return hasReceipts || Shims.of(datastore).stream().anyMatch(Shim::isWaitable);
  }

  /**
   * Returns whether receipts can show what is published to an exchange: it is a write then. No tap
   * can be bound to the default exchange.
   */
  boolean hears(String published) {
    if (exchange != null) {
      return published.equals(exchange);
    }
    var brokers =
        Shims.of(datastore).stream()
            .filter(shim -> shim.isWaitable() && shim instanceof RabbitMqShim)
            .map(RabbitMqShim.class::cast)
            .toList();
    return brokers.isEmpty()
        ? !published.isEmpty()
        : brokers.stream().anyMatch(broker -> broker.hears(published));
  }
}
