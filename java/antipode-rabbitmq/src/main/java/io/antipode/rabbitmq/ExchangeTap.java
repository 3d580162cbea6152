package io.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import io.antipode.ConfigurationException;
import io.antipode.barrier.UnreachableException;
import io.antipode.messages.Heard;
import io.antipode.messages.Ledger;
import io.antipode.messages.Tap;
import io.antipode.runtime.Counts;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * A private queue that shows which publications were routed in this region, from the creation of
 * its shim: what passes before somebody waits for it must be seen, too. Connects again whenever it
 * must.
 */
final class ExchangeTap implements Tap {
  /** A dead connection is noticed after twice this many seconds. */
  private static final int HEARTBEAT_S = 10;

  /**
   * Messages that the broker holds for a tap that does not keep up; the oldest are dropped over it,
   * which leaves a gap that is reported.
   */
  private static final int MOST_QUEUED = 100_000;

  private static final long RETRY_LEAST_MS = 50;
  private static final long RETRY_MOST_MS = 2_000;
  private static final long FIRST_MS = 15_000;
  private static final long END_MS = 10_000;

  private final String exchange;
  private final Receipts receipts;
  private final Ledger ledger;
  private final String datastore;
  private final Link link;
  private final Thread thread;
  private final CountDownLatch tried = new CountDownLatch(1);
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable CountDownLatch ended;
  private volatile @Nullable ConfigurationException refused;
  private volatile String queue = "";
  private volatile String cause = "not connected yet";

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
    this.thread = new Thread(this::run, "antipode-receipts-" + datastore);
    thread.setDaemon(true);
  }

  /**
   * Begins to listen; returns when the tap is bound, or the broker cannot be reached now.
   *
   * @throws ConfigurationException if the broker refuses the user, or there is no such exchange
   */
  void start() {
    thread.start();
    try {
      boolean ignored = tried.await(FIRST_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    ConfigurationException error = refused;
    if (error != null) {
      close();
      throw error;
    }
  }

  /** Returns to which exchange it listens. */
  String exchange() {
    return exchange;
  }

  /** Returns the name of the present queue, new with each connection; empty without one. */
  @Override
  public String queue() {
    return queue;
  }

  @Override
  public String deaf() {
    return queue.isEmpty() ? "the receipts are not connected: " + cause : "";
  }

  @Override
  public String unseen() {
    return "the exchange '"
        + exchange
        + "' has not routed it here: what went to another one is not heard";
  }

  /** Stops to listen, and ends the thread; may be called again. */
  void close() {
    closed.countDown();
    CountDownLatch listening = ended;
    if (listening != null) {
      listening.countDown();
    }
    link.close();
    try {
      thread.join(END_MS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean isClosed() {
    return closed.getCount() == 0;
  }

  private void run() {
    long retryMs = RETRY_LEAST_MS;
    while (!isClosed()) {
      try {
        listen();
      } catch (ConfigurationException error) {
        refused = error;
        cause = String.valueOf(error.getMessage());
      } catch (IOException | RuntimeException error) {
        cause = Link.describe(error);
      } catch (InterruptedException error) {
        return; // Nobody else interrupts it.
      }
      retryMs = queue.isEmpty() ? Math.min(retryMs * 2, RETRY_MOST_MS) : RETRY_LEAST_MS;
      lost();
      if (isClosedWithin(retryMs)) {
        return;
      }
    }
  }

  private boolean isClosedWithin(long ms) {
    try {
      return closed.await(ms, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      return true;
    }
  }

  /** Notifies whoever waits that nothing is heard any more. */
  private void lost() {
    queue = "";
    link.close();
    if (!isClosed()) {
      Counts.count("receipts_lost", datastore);
      Counts.LOG.log(Level.INFO, "receipts of {0}: {1}", new Object[] {datastore, cause});
    }
    tried.countDown();
    ledger.wakeUp();
  }

  private void listen() throws IOException, InterruptedException {
    Channel channel = link.channel();
    CountDownLatch listening = new CountDownLatch(1);
    ended = listening;
    channel.addShutdownListener(
        signal -> {
          cause = Link.describe(signal);
          listening.countDown();
        });
    String bound = bind(channel);
    ledger.listening(); // What is routed from here on lies in the queue.
    String ignored =
        channel.basicConsume(
            bound,
            true,
            (tag, message) ->
                Heard.routed(ledger, Texts.of(message.getProperties().getHeaders()), datastore),
            tag -> {
              cause = "the broker closed the tap";
              listening.countDown();
            });
    queue = bound;
    cause = "";
    refused = null;
    tried.countDown();
    if (!isClosed()) {
      listening.await();
    }
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
