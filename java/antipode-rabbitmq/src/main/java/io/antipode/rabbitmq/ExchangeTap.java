package io.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import io.antipode.ConfigurationException;
import io.antipode.barrier.UnreachableException;
import io.antipode.messages.Heard;
import io.antipode.messages.Ledger;
import io.antipode.messages.ReconnectingTap;
import java.io.IOException;
import java.util.Map;
import java.util.function.Consumer;

/** A private queue that shows which publications were routed in this region. */
final class ExchangeTap extends ReconnectingTap {
  /** A dead connection is noticed after twice this many seconds. */
  private static final int HEARTBEAT_S = 10;

  /**
   * Messages that the broker holds for a tap that does not keep up; the oldest are dropped over it,
   * which leaves a gap that is reported.
   */
  private static final int MOST_QUEUED = 100_000;

  private final String exchange;
  private final Receipts receipts;
  private final Ledger ledger;
  private final String datastore;
  private final Link link;

  /**
   * Prepares to listen.
   *
   * @throws ConfigurationException if there is no exchange to listen to
   */
  ExchangeTap(
      ConnectionFactory broker,
      String exchange,
      Receipts receipts,
      Ledger ledger,
      String datastore) {
    super(ledger, datastore);
    if (exchange.isEmpty()) {
      throw new ConfigurationException(
          "receipts of '"
              + datastore
              + "' need an exchange: the default one takes no bindings; for a queue whose messages"
              + " all come to this process say Receipts.ofConsumers()");
    }
    this.exchange = exchange;
    this.receipts = receipts;
    this.ledger = ledger;
    this.datastore = datastore;
    this.link = new Link(broker, "antipode receipts " + datastore).heartbeat(HEARTBEAT_S);
  }

  /** Returns to which exchange it listens. */
  String exchange() {
    return exchange;
  }

  @Override
  public String unseen() {
    return "the exchange '"
        + exchange
        + "' has not routed it here: what went to another one is not heard";
  }

  @Override
  protected String listen(Consumer<String> lost) throws IOException {
    Channel channel = link.channel();
    channel.addShutdownListener(signal -> lost.accept(Link.describe(signal)));
    String bound = bind(channel);
    ledger.listening(); // What is routed from here on lies in the queue.
    String ignored =
        channel.basicConsume(
            bound,
            true,
            (tag, message) ->
                Heard.routed(ledger, Texts.of(message.getProperties().getHeaders()), datastore),
            tag -> lost.accept("the broker closed the tap"));
    return bound;
  }

  @Override
  protected void disconnect() {
    link.close();
  }

  @Override
  protected String describe(Exception error) {
    return Link.describe(error);
  }

  /** Declares the private queue and binds it. */
  private String bind(Channel channel) throws IOException {
    try {
      Map<String, Object> arguments = Map.of("x-max-length", MOST_QUEUED);
      String declared = channel.queueDeclare("", false, true, true, arguments).getQueue();
      for (String key : receipts.bindings()) {
        var ignored = channel.queueBind(declared, exchange, key);
      }
      return declared;
    } catch (IOException error) {
      if (Link.closeCode(error) == 0) {
        throw new UnreachableException(Link.describe(error), error);
      }
      throw new ConfigurationException(
          "receipts of '"
              + datastore
              + "': the broker refuses a tap on the exchange '"
              + exchange
              + "' (it must exist, and the user may bind to it): "
              + Link.describe(error));
    }
  }
}
