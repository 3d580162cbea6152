package io.antipode.mysql;

import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The question of one connection that is put off until a lineage is used; see {@link Lasting}. */
final class PutOff {
  private final MySqlShim shim;
  private final ReentrantLock using;
  private final Supplier<Lineage> question;

  /** The last one; null for none. */
  private volatile @Nullable Lasting lasting;

  /** Whether the application may write on the driver's own connection, unobserved. */
  private boolean isUnwrapped;

  /** With what {@link Lasting} takes. */
  PutOff(MySqlShim shim, ReentrantLock using, Supplier<Lineage> question) {
    this.shim = shim;
    this.using = using;
    this.question = question;
  }

  /** The application has the driver's own connection, until it gives it back. */
  void unwrapped() {
    isUnwrapped = true;
  }

  /** Returns whether it has. */
  boolean isUnwrapped() {
    return isUnwrapped;
  }

  /** Lets the lineage of the current request ask, once it is used. */
  void ask() {
    Lasting held = lasting;
    if (held == null || held.isSettled()) {
      held = new Lasting(shim, using, question);
      lasting = held;
    }
    held.stands(isUnwrapped);
    Recording.deferRead(held);
  }

  /** The transaction is over, and its end reported what it left. */
  void ended() {
    Lasting held = lasting;
    if (held != null && !isUnwrapped) {
      held.ended();
    }
  }

  /** Asks now, before somebody else gets the connection; or says that it is gone. */
  void settle(boolean isAlive) {
    Lasting held = lasting;
    if (held != null && isAlive) {
      held.stands(false);
      Lineage unused = held.get();
    } else if (held != null) {
      held.lost();
    }
  }
}
