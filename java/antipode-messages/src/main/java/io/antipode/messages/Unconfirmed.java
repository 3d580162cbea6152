package io.antipode.messages;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One message, from when it is sent until something says whether the broker has it. Its request's
 * scope defers it: the lineage that is used next waits for the confirm, and says that the message
 * is in doubt where none comes in time. Thread-safe.
 *
 * <p>Two do not wait: who sends a further message over the same connection, which takes them in
 * order, and the thread that takes confirms in. There the name enters as that of a message without
 * a confirm, and stays, also where it is refused later: it has superseded those before.
 */
public final class Unconfirmed implements Supplier<Lineage> {
  /** How long whoever uses a lineage waits for the confirm of a message in it. */
  static final Duration CONFIRM = Duration.ofSeconds(1);

  private final WriteId write;
  private final @Nullable Scope scope;
  private final Connection connection;
  private final @Nullable StackTraceElement site = Recording.callSite();
  private final CountDownLatch over = new CountDownLatch(1);
  private volatile Lineage lineage;

  /** What messages are sent over. Thread-safe. */
  public static final class Connection {
    private final ThreadLocal<Boolean> isSending = ThreadLocal.withInitial(() -> false);
    private volatile @Nullable Thread hearing;

    /** Runs what prepares a further message, which does not wait for those before. */
    public <T, E extends Exception> T sending(Preparing<T, E> preparing) throws E {
      isSending.set(true);
      try {
        return preparing.run();
      } finally {
        isSending.remove();
      }
    }

    /** The current thread takes confirms in. */
    public void hears() {
      hearing = Thread.currentThread();
    }

    private boolean awaits() {
      return !isSending.get() && hearing != Thread.currentThread();
    }
  }

  /** What prepares a message. */
  @FunctionalInterface
  public interface Preparing<T, E extends Exception> {
    T run() throws E;
  }

  /** Takes the current scope; nothing is deferred yet. */
  public Unconfirmed(WriteId write, Connection connection) {
    this.write = write;
    this.scope = Scope.currentOrNull();
    this.connection = connection;
    this.lineage = Lineage.of(write);
  }

  public WriteId write() {
    return write;
  }

  /** It is on its way from now on. */
  public void sent() {
    if (scope != null) {
      scope.defer(this);
    }
  }

  @Override
  public Lineage get() {
    try {
      if (connection.awaits() && !over.await(CONFIRM.toNanos(), TimeUnit.NANOSECONDS)) {
        doubt();
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      doubt();
    }
    return lineage;
  }

  /** The broker has it. */
  public void confirm() {
    over.countDown();
    if (scope != null) {
      CallSite.handle(site, () -> scope.append(write));
    }
  }

  /** The broker does not have it. */
  public void refuse() {
    lineage = Lineage.empty();
    over.countDown();
  }

  /** The broker may have it. */
  public void doubt() {
    lineage = Lineage.empty().marked(new Incomplete(write.datastore(), "in_doubt"));
    over.countDown();
    Counts.count("incomplete", write.datastore());
    if (scope != null) {
      scope.markIncomplete(write.datastore(), "in_doubt");
    }
  }
}
