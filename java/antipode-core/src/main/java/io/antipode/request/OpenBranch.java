package io.antipode.request;

import io.opentelemetry.context.Context;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A branch of a request: open from when it is made until it is finished, once, or until nobody can
 * finish it any more. It does not keep the scope when it is over. Thread-safe.
 */
final class OpenBranch {
  private static final Cleaner CLEANER = Cleaner.create();

  private static final OpenBranch NONE = new OpenBranch(null);

  private final @Nullable State state;

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

  private OpenBranch(@Nullable Scope scope) {
    state = scope == null ? null : new State(scope);
    if (state != null) {
      CLEANER.register(this, state);
    }
  }

  /** Returns a branch of the scope of a context; one of nothing where it has none. */
  static OpenBranch of(Context context) {
    Scope scope = Scope.fromContextOrNull(context);
    return scope == null ? NONE : new OpenBranch(scope);
  }

  /** The branch is over. What comes second changes nothing. */
  void finish() {
    if (state != null) {
      state.run();
    }
  }
}
