package io.antipode;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A branch of a request: open from when it is made until it is finished, once, or until nobody can
 * finish it any more. It does not keep the scope when it is over. Thread-safe.
 */
final class OpenBranch {
  private static final Cleaner CLEANER = Cleaner.create();

  private final State state;

  /** What is left when the branch is collected; it must not know the branch. */
  private static final class State implements Runnable {
    private final AtomicReference<@Nullable Scope> scope;

    State(Scope scope) {
      this.scope = new AtomicReference<>(scope);
      scope.began();
    }

    @Override
    public void run() {
      Scope held = scope.getAndSet(null);
      if (held != null) {
        held.finished();
      }
    }
  }

  OpenBranch(Scope scope) {
    state = new State(scope);
    CLEANER.register(this, state);
  }

  /** The branch is over. What comes second changes nothing. */
  void finish() {
    state.run();
  }
}
