package io.antipode.messages;

import io.antipode.ConfigurationException;
import io.antipode.runtime.Counts;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Listens from the creation of its shim on, for what passes before somebody waits for it must be
 * seen, too. Connects again whenever it must.
 */
public abstract class ReconnectingTap implements Tap {
  private static final long RETRY_LEAST_MS = 50;
  private static final long RETRY_MOST_MS = 2_000;
  private static final long FIRST_MS = 15_000;
  private static final long END_MS = 10_000;

  private final Ledger ledger;
  private final String datastore;
  private final Thread thread;
  private final CountDownLatch tried = new CountDownLatch(1);
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable CountDownLatch ended;
  private volatile @Nullable ConfigurationException refused;
  private volatile String queue = "";
  private volatile String cause = "not connected yet";

  /** Prepares to listen. */
  protected ReconnectingTap(Ledger ledger, String datastore) {
    this.ledger = ledger;
    this.datastore = datastore;
    this.thread = new Thread(this::run, "antipode-receipts-" + datastore);
    thread.setDaemon(true);
  }

  /**
   * Connects and subscribes, and notes in the ledger when it listens.
   *
   * @param lost takes why nothing is heard any more, once that is so
   * @return what distinguishes this connection from earlier ones
   * @throws ConfigurationException if the broker refuses it for good
   */
  protected abstract String listen(Consumer<String> lost) throws Exception;

  /** Ends the connection, in whatever state it is; may be called again. */
  protected abstract void disconnect();

  /** Returns an error in a line. */
  protected abstract String describe(Exception error);

  /**
   * Begins to listen; returns when that is so, or the broker cannot be reached now.
   *
   * @throws ConfigurationException if the broker refuses it for good
   */
  public final void start() {
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

  @Override
  public final String queue() {
    return queue;
  }

  @Override
  public final String deaf() {
    return queue.isEmpty() ? "the receipts are not connected: " + cause : "";
  }

  /** Stops to listen, and ends the thread; may be called again. */
  public final void close() {
    closed.countDown();
    CountDownLatch listening = ended;
    if (listening != null) {
      listening.countDown();
    }
    disconnect();
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
        listenOnce();
      } catch (ConfigurationException error) {
        refused = error;
        cause = String.valueOf(error.getMessage());
      } catch (InterruptedException error) {
        return; // Nobody else interrupts it.
      } catch (Exception error) {
        cause = describe(error);
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
    disconnect();
    if (!isClosed()) {
      Counts.count("receipts_lost", datastore);
      Counts.LOG.log(Level.INFO, "receipts of {0}: {1}", new Object[] {datastore, cause});
    }
    tried.countDown();
    ledger.wakeUp();
  }

  private void listenOnce() throws Exception {
    CountDownLatch listening = new CountDownLatch(1);
    ended = listening;
    String bound =
        listen(
            why -> {
              cause = why;
              listening.countDown();
            });
    queue = bound;
    refused = null;
    tried.countDown();
    if (!isClosed()) {
      listening.await();
    }
  }
}
