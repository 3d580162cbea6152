package io.antipode.activemq;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.ReceiptsShim;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.jspecify.annotations.Nullable;

/**
 * One broker as one process sees it: messages carry lineages in their properties, and name
 * themselves as the write that they are. Thread-safe; publishing and consuming have a connection
 * each, opened when first used.
 *
 * <p>With receipts a barrier waits until a message reached the topic at the broker, in the region
 * where this process reads. Without them messages are reported by barriers, and never waited for.
 */
public final class ActiveMqShim extends ReceiptsShim {
  /** After which a broker that does not answer is none. */
  private static final int TIMEOUT_MS = 10_000;

  private static final Duration GAP_AGE = Duration.ofSeconds(5);

  /** So that the broker keeps for others what this process does not handle. */
  private static final String ONE_AT_A_TIME = "?consumer.prefetchSize=1";

  private final @Nullable String topic;
  private final @Nullable String queue;
  private final Publisher publisher;
  private final Link consuming;
  private @Nullable Session session;
  private @Nullable MessageConsumer consumer;
  private final @Nullable TopicTap tap;

  /**
   * One consumed message.
   *
   * @param value its body
   * @param key its correlation id, with which it was written; empty without one
   * @param isRedelivered whether it was delivered before, and not acknowledged
   * @param lineage what it depends on, itself included
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares messages.
  public record Delivery(byte[] value, String key, boolean isRedelivered, Lineage lineage) {}

  /** Handles one message. */
  public interface Handler {
    /** Handles it; what it throws lets the broker deliver it again. */
    void handle(Delivery message) throws Exception;
  }

  private ActiveMqShim(Builder builder) {
    super(builder, builder.gapAge);
    this.topic = builder.topic;
    this.queue = builder.queue;
    this.publisher = new Publisher(builder.broker, datastore());
    this.consuming = new Link(builder.broker, Session.CLIENT_ACKNOWLEDGE);
    this.tap =
        ledger == null
            ? null
            : new TopicTap(builder.broker, required(topic, "topic"), ledger, datastore());
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param url of the broker, as ActiveMQ's client takes it: {@code tcp://host:61616}
   * @throws ConfigurationException if the URL is malformed
   */
  public static Builder builder(String datastore, String url) {
    try {
      ActiveMQConnectionFactory broker = new ActiveMQConnectionFactory(url);
      broker.setConnectResponseTimeout(TIMEOUT_MS);
      broker.setSendTimeout(TIMEOUT_MS);
      broker.setCloseTimeout(TIMEOUT_MS);
      return new Builder(datastore, broker);
    } catch (IllegalArgumentException error) { // It repeats the URL, with what may be in it.
      throw new ConfigurationException("the broker's URL is malformed: tcp://host:61616");
    }
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param broker what connects to it, which is not instrumented
   */
  public static Builder builder(String datastore, ConnectionFactory broker) {
    return new Builder(datastore, broker);
  }

  /** Describes a shim. */
  public static final class Builder extends ShimBuilder<Builder, ActiveMqShim> {
    private final ConnectionFactory broker;
    private @Nullable String topic;
    private @Nullable String queue;
    private @Nullable Duration gapAge;

    private Builder(String datastore, ConnectionFactory broker) {
      super(datastore);
      this.broker = Objects.requireNonNull(broker, "broker");
    }

    /**
     * Names where messages are published, and to which receipts listen: a virtual topic, such as
     * {@code VirtualTopic.news}, has queues, too.
     */
    public Builder topic(String topic) {
      this.topic = topic;
      return this;
    }

    /** Names what messages are taken from, such as {@code Consumer.app.VirtualTopic.news}. */
    public Builder queue(String queue) {
      this.queue = queue;
      return this;
    }

    /**
     * Listens to the topic, from the registration on, so that barriers wait for what reaches it. A
     * broker that cannot be reached then is no error.
     */
    public Builder receipts() {
      return receipts(GAP_AGE);
    }

    /** As {@link #receipts()}, where what may have been missed counts as missed after this. */
    public Builder receipts(Duration gapAge) {
      if (Objects.requireNonNull(gapAge, "gapAge").isNegative() || gapAge.isZero()) {
        throw new ConfigurationException("a gap's age must be positive, not " + gapAge);
      }
      this.gapAge = gapAge;
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected ActiveMqShim build() {
      ActiveMqShim shim = new ActiveMqShim(this);
      if (shim.tap != null) {
        shim.tap.start();
      }
      return shim;
    }
  }

  private String required(@Nullable String name, String what) {
    if (name == null) {
      throw new ConfigurationException("which " + what + " of '" + datastore() + "'? Name it");
    }
    return name;
  }

  @Override
  protected @Nullable TopicTap tap() {
    return tap;
  }

  // Table 2.

  /**
   * Publishes a persistent message that depends on the current lineage, and waits until the broker
   * has it.
   *
   * @param key the correlation id
   * @return the lineage with this message, which enters the current scope as well
   * @throws JMSException as {@link #write(String, byte[], Lineage, Promise)}
   */
  public Lineage write(String key, byte[] value) throws JMSException {
    Scope scope = Scope.currentOrNull();
    return write(key, value, scope == null ? Lineage.empty() : scope.leaving(), null);
  }

  /**
   * Publishes a persistent message, and waits until the broker has it.
   *
   * @param key the correlation id
   * @param lineage what it depends on
   * @param fulfils a promise that it fulfils, for whoever has receipts; null for none
   * @return the lineage with this message, which enters the current scope as well
   * @throws JMSException if the broker refused it, or the connection was lost: the scope is marked
   *     then
   * @throws UnreachableException if there is no connection; nothing was sent
   */
  public Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws JMSException {
    Map<String, Object> headers = fulfils == null ? null : MessageHeaders.fulfilling(null, fulfils);
    WriteId write = publisher.publish(required(topic, "topic"), key, value, headers, lineage);
    return lineage.append(write);
  }

  /**
   * Takes the next message off the queue, at most once; null where none came. Its lineage is merged
   * into the current scope.
   *
   * @param timeout how long to wait for one
   * @throws JMSException if the connection was lost
   * @throws UnreachableException if there is no connection
   */
  public synchronized @Nullable Delivery read(Duration timeout) throws JMSException {
    Message message = next(timeout);
    if (message == null) {
      return null;
    }
    message.acknowledge();
    Delivery delivery = delivery(message);
    recordRead(delivery.lineage);
    return delivery;
  }

  /**
   * Handles the next message of the queue in a scope of its own, at least once: it is acknowledged
   * when the handler returns, and delivered again when that throws, as a barrier in it does.
   *
   * @param timeout how long to wait for one
   * @return whether there was one
   * @throws JMSException if the connection was lost: the broker delivers the message again
   * @throws UnreachableException if there is no connection
   * @throws Exception what the handler threw
   */
  public synchronized boolean receive(Duration timeout, Handler handler) throws Exception {
    Message message = next(timeout);
    if (message == null) {
      return false;
    }
    Delivery delivery = delivery(message);
    boolean isHandled = false;
    try (ScopeBlock block = Antipode.scope(delivery.lineage)) {
      handler.handle(delivery);
      isHandled = true;
    } finally {
      if (!isHandled) {
        consuming.close(); // The broker delivers it again.
      }
    }
    message.acknowledge();
    return true;
  }

  private @Nullable Message next(Duration timeout) throws JMSException {
    Session opened = consuming.session();
    MessageConsumer held = consumer;
    if (held == null || opened != session) {
      held = opened.createConsumer(opened.createQueue(required(queue, "queue") + ONE_AT_A_TIME));
      session = opened;
      consumer = held;
    }
    return held.receive(Math.max(1, timeout.toMillis()));
  }

  private Delivery delivery(Message message) throws JMSException {
    return new Delivery(
        Bodies.bytes(message),
        Objects.requireNonNullElse(message.getJMSCorrelationID(), ""),
        message.getJMSRedelivered(),
        received(MessageProperties.of(message)).lineage());
  }

  /**
   * Lets a message fulfil a promise once it reaches its topic, for whoever has receipts: for
   * messages that the application sends itself.
   *
   * @throws JMSException if its properties cannot be changed
   */
  public static void fulfil(Message message, Promise promise) throws JMSException {
    for (Map.Entry<String, Object> each : MessageHeaders.fulfilling(null, promise).entrySet()) {
      message.setObjectProperty(each.getKey(), each.getValue());
    }
  }

  @Override
  public void close() {
    super.close();
    publisher.close();
    consuming.close();
  }
}
