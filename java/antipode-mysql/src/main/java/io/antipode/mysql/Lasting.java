package io.antipode.mysql;

import io.antipode.lineage.Lineage;
import io.antipode.request.Standing;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What an open transaction may have left that no rollback undoes, such as rows in a table without
 * transactions, or what the application may write on the driver's own connection. Where replies do
 * not have its position, the connection is asked: once, by whoever uses the lineage first, unless
 * the transaction's end reported it before; while it stands, by each. Thread-safe.
 */
final class Lasting implements Standing {
  /** The longest wait for a statement that is in flight on the connection. */
  private static final Duration LONGEST = Duration.ofSeconds(1);

  /** Held by whoever uses the connection. */
  private final ReentrantLock using;

  private final MySqlShim shim;
  private final Supplier<Lineage> question;
  private final AtomicReference<@Nullable Lineage> answer = new AtomicReference<>();
  private volatile boolean isStanding;

  /**
   * Puts a question off.
   *
   * @param using the lock of the connection
   * @param question throws nothing; a lineage that says so where there is no answer
   */
  Lasting(MySqlShim shim, ReentrantLock using, Supplier<Lineage> question) {
    this.shim = shim;
    this.using = using;
    this.question = question;
  }

  /** Says whether more may be written unseen, so that no answer is the last one. */
  void stands(boolean mayGrow) {
    isStanding = mayGrow;
  }

  @Override
  public boolean isOver() {
    return !isStanding || isSettled();
  }

  @Override
  public Lineage get() {
    Lineage found = answer.get();
    if (found != null) {
      return found;
    }
    if (!isFree()) {
      return answered(unknown("another statement is on its connection"));
    }
    try {
      found = answer.get();
      return found == null ? answered(question.get()) : found;
    } finally {
      using.unlock();
    }
  }

  private boolean isFree() {
    try {
      return using.tryLock(LONGEST.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private Lineage unknown(String why) {
    return shim.unsampled(Lineage.empty(), why);
  }

  /** The connection cannot be asked any more. */
  void lost() {
    if (!isSettled()) {
      Lineage unused = settle(unknown("its connection was lost"));
    }
  }

  /** The transaction is over, and its end reported what it left. */
  void ended() {
    Lineage unused = settle(Lineage.empty());
  }

  private Lineage answered(Lineage found) {
    return isStanding ? found : settle(found);
  }

  private Lineage settle(Lineage found) {
    boolean ignored = answer.compareAndSet(null, found);
    return Objects.requireNonNull(answer.get());
  }

  /** Returns whether it was answered: what is written later needs another question. */
  boolean isSettled() {
    return answer.get() != null;
  }
}
