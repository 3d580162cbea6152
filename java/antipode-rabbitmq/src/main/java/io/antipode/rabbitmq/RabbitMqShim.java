package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Publications;
import io.antipode.messages.ReceiptsShim;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One broker as one process sees it: messages carry lineages in their headers, and name themselves
 * as the write that they are. Thread-safe; publishing and consuming have a connection each, opened
 * when first used.
 *
 * <p>With receipts a barrier waits until a message was routed at the broker, in the region where
 * this process reads. Without them messages are reported by barriers, and never waited for.
 */
public final class RabbitMqShim extends ReceiptsShim {
  private static final Duration CONFIRM = Duration.ofSeconds(5);

  private final String exchange;
  private final @Nullable String queue;
  private final boolean isMandatory;
  private final Publisher publisher;
  private final Link consumer;
  private final Object consuming = new Object();
  private final @Nullable ExchangeTap tap;

  /**
   * One consumed message.
   *
   * @param value its body
   * @param key the routing key with which it was published
   * @param isRedelivered whether it was delivered before, and not acknowledged
   * @param lineage what it depends on, itself included
   */
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares messages.
  public record Message(byte[] value, String key, boolean isRedelivered, Lineage lineage) {}

  /** Handles one message. */
  public interface Handler {
    /** Handles it; what it throws puts the message back. */
    void handle(Message message) throws Exception;
  }

  private RabbitMqShim(Builder builder) {
    super(builder, builder.receipts == null ? null : builder.receipts.gapAge());
    this.exchange = builder.exchange;
    this.queue = builder.queue;
    this.isMandatory = builder.isMandatory;
    String name = "antipode " + datastore();
    this.publisher =
        new Publisher(
            new Link(builder.broker, name + " publisher"),
            new Publications(datastore(), builder.byRoutingKey),
            datastore(),
            builder.timeout);
    this.consumer = new Link(builder.broker, name + " consumer");
    Receipts receipts = builder.receipts;
    this.tap =
        receipts == null || ledger == null || !receipts.hasTap()
            ? null
            : new ExchangeTap(builder.broker, exchange, receipts, ledger, datastore());
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param url of the broker: {@code amqp://user:password@host/vhost}
   * @throws ConfigurationException if the URL is malformed
   */
  public static Builder builder(String datastore, String url) {
    return new Builder(datastore, Link.factory(url));
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param broker what connects to it, of which a copy is used
   */
  public static Builder builder(String datastore, ConnectionFactory broker) {
    return new Builder(datastore, broker);
  }

  /** Describes a shim. */
  public static final class Builder extends ShimBuilder<Builder, RabbitMqShim> {
    private final ConnectionFactory broker;
    private String exchange = "";
    private @Nullable String queue;
    private @Nullable Receipts receipts;
    private boolean byRoutingKey;
    private boolean isMandatory;
    private Duration timeout = CONFIRM;

    private Builder(String datastore, ConnectionFactory broker) {
      super(datastore);
      this.broker = Objects.requireNonNull(broker, "broker");
    }

    /**
     * Names where messages are published, and to which receipts listen; by default the default
     * exchange, whose routing keys are queues.
     */
    public Builder exchange(String exchange) {
      this.exchange = Objects.requireNonNull(exchange, "exchange");
      return this;
    }

    /** Names what messages are taken from. */
    public Builder queue(String queue) {
      this.queue = queue;
      return this;
    }

    /**
     * Listens to what is routed, from the registration on, so that barriers wait for it. A broker
     * that cannot be reached then is no error; one that refuses the user, or lacks the exchange, is
     * a {@link ConfigurationException}.
     */
    public Builder receipts(Receipts receipts) {
      this.receipts = receipts;
      return this;
    }

    /** Numbers by routing key, as readers do whose receipts listen to single ones. */
    public Builder sequenceByRoutingKey() {
      this.byRoutingKey = true;
      return this;
    }

    /** Makes a message that no queue takes an error. */
    public Builder mandatory() {
      this.isMandatory = true;
      return this;
    }

    /** Says after which a message without a confirm is in doubt; 5 seconds by default. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected RabbitMqShim build() {
      RabbitMqShim shim = new RabbitMqShim(this);
      if (shim.tap != null) {
        shim.tap.start();
      }
      return shim;
    }
  }

  @Override
  protected @Nullable ExchangeTap tap() {
    return tap;
  }

  /** Returns whether receipts can show what is published to an exchange. */
  boolean hears(String published) {
    return tap == null || published.equals(tap.exchange());
  }

  // Table 2.

  /**
   * Publishes a message that depends on the current lineage, and waits for the confirm.
   *
   * @return the lineage with this message, which enters the current scope as well
   * @throws IOException as {@link #write(String, byte[], BasicProperties, Lineage, Promise)}
   */
  public Lineage write(String key, byte[] value) throws IOException {
    Scope scope = Scope.currentOrNull();
    return write(key, value, scope == null ? Lineage.empty() : scope.leaving(), null);
  }

  /**
   * Publishes a message, and waits for the confirm.
   *
   * @param lineage what it depends on
   * @param fulfils a promise that it fulfils, for whoever has receipts; null for none
   * @return the lineage with this message, which enters the current scope as well
   * @throws IOException as {@link #write(String, byte[], BasicProperties, Lineage, Promise)}
   */
  public Lineage write(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws IOException {
    return write(key, value, new BasicProperties(), lineage, fulfils);
  }

  /**
   * Publishes a message, and waits for the confirm.
   *
   * @param key the routing key
   * @param value the body
   * @param properties with headers of the application's; they are not changed
   * @param lineage what it depends on
   * @param fulfils a promise that it fulfils, for whoever has receipts; null for none
   * @return the lineage with this message, which enters the current scope as well
   * @throws UnroutableException if it is mandatory, and no queue takes it
   * @throws IOException if the connection was lost, or a queue refused it while another may have
   *     it; the scope is marked
   * @throws UnreachableException if there is no connection; nothing was sent
   */
  public Lineage write(
      String key,
      byte[] value,
      BasicProperties properties,
      Lineage lineage,
      @Nullable Promise fulfils)
      throws IOException {
    @Nullable Map<String, Object> given = Texts.of(properties.getHeaders());
    Map<String, Object> headers =
        fulfils == null ? given : MessageHeaders.fulfilling(given, fulfils);
    WriteId write =
        publisher.publish(
            new Publisher.Message(
                exchange,
                key,
                isMandatory,
                properties,
                value,
                named -> MessageHeaders.carrying(headers, named, lineage, datastore())));
    return lineage.append(write);
  }

  /**
   * Takes the next message off the queue, at most once; null where there is none. Its lineage is
   * merged into the current scope.
   *
   * @throws IOException if the connection was lost, or there is no such queue
   * @throws UnreachableException if there is no connection
   */
  public @Nullable Message read() throws IOException {
    GetResponse got;
    synchronized (consuming) {
      got = consumer.channel().basicGet(queueName(), true);
    }
    if (got == null) {
      return null;
    }
    Message message = message(got);
    recordRead(message.lineage);
    return message;
  }

  /**
   * Handles the next message of the queue in a scope of its own, at least once: it is acknowledged
   * when the handler returns, and put back when that throws, as a barrier in it does.
   *
   * @return whether there was one
   * @throws IOException if the connection was lost: the broker delivers the message again
   * @throws UnreachableException if there is no connection
   * @throws Exception what the handler threw
   */
  public boolean receive(Handler handler) throws Exception {
    Channel channel;
    GetResponse got;
    synchronized (consuming) {
      channel = consumer.channel();
      got = channel.basicGet(queueName(), false);
    }
    if (got == null) {
      return false;
    }
    long tag = got.getEnvelope().getDeliveryTag();
    boolean isHandled = false;
    Message message = message(got);
    try (ScopeBlock block = Antipode.scope(message.lineage)) {
      handler.handle(message);
      isHandled = true;
    } finally {
      if (!isHandled) {
        putBack(channel, tag);
      }
    }
    synchronized (consuming) {
      channel.basicAck(tag, false);
    }
    return true;
  }

  private void putBack(Channel channel, long tag) {
    synchronized (consuming) {
      try {
        channel.basicNack(tag, false, true);
      } catch (IOException | RuntimeException gone) {
        // Where the connection is lost as well, the broker puts it back on its own.
      }
    }
  }

  private Message message(GetResponse got) {
    return new Message(
        got.getBody(),
        got.getEnvelope().getRoutingKey(),
        got.getEnvelope().isRedeliver(),
        received(Texts.of(got.getProps().getHeaders())).lineage());
  }

  private String queueName() {
    if (queue == null) {
      throw new ConfigurationException("which queue of '" + datastore() + "'? Name it");
    }
    return queue;
  }

  /**
   * Returns properties with which a message fulfils a promise once it is routed, for whoever has
   * receipts: for messages that the application publishes itself.
   */
  public static BasicProperties fulfilling(BasicProperties properties, Promise promise) {
    return properties
        .builder()
        .headers(MessageHeaders.fulfilling(properties.getHeaders(), promise))
        .build();
  }

  @Override
  public void close() {
    super.close();
    publisher.close();
    consumer.close();
  }
}
