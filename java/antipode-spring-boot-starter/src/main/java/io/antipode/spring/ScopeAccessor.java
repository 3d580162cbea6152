package io.antipode.spring;

import io.antipode.request.Scope;
import io.micrometer.context.ContextRegistry;
import io.micrometer.context.ThreadLocalAccessor;
import io.opentelemetry.context.Context;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.util.context.ContextView;

/**
 * Makes the scope in a context of Reactor, or in a snapshot of Micrometer's, current in the threads
 * that work with it. One that has no scope says nothing: what is current stays.
 */
final class ScopeAccessor implements ThreadLocalAccessor<Scope> {
  /** Under which it stands in a context of Reactor. */
  static final String KEY = "antipode-scope";

  /** What was current in this thread before each value that is set. */
  private static final ThreadLocal<Deque<Context>> AROUND =
      ThreadLocal.withInitial(ArrayDeque::new);

  /**
   * Registers it before all others. They restore in the order in which they set: what another one
   * has put on top of ours goes with ours, and what lies under ours would stay.
   */
  static void register() {
    ContextRegistry registry = ContextRegistry.getInstance();
    List<ThreadLocalAccessor<?>> others = List.copyOf(registry.getThreadLocalAccessors());
    registry.registerThreadLocalAccessor(new ScopeAccessor());
    for (ThreadLocalAccessor<?> other : others) {
      if (other.key() instanceof String key && !key.equals(KEY)) {
        registry.removeThreadLocalAccessor(key);
        registry.registerThreadLocalAccessor(other);
      }
    }
  }

  /** The current context, with the scope of Reactor's, where no thread has that. */
  static Context context(ContextView view) {
    Context context = Context.current();
    Scope held = view.getOrDefault(KEY, null);
    return held == null || held == Scope.fromContextOrNull(context)
        ? context
        : held.storeInContext(context);
  }

  @Override
  public Object key() {
    return KEY;
  }

  @Override
  public @Nullable Scope getValue() {
    return Scope.currentOrNull();
  }

  @Override
  public void setValue(Scope value) {
    set(value.storeInContext(Context.current()));
  }

  @Override
  public void setValue() {
    set(Context.current());
  }

  @SuppressWarnings("MustBeClosedChecker") // Restored by what is kept.
  private static void set(Context context) {
    around().push(Context.current());
    context.makeCurrent();
  }

  @Override
  public void restore(Scope previous) {
    restore();
  }

  @Override
  @SuppressWarnings("MustBeClosedChecker") // It was current before, and whoever made it so ends it.
  public void restore() {
    Context context = around().poll();
    if (context != null) {
      context.makeCurrent();
    }
  }

  private static Deque<Context> around() {
    return Objects.requireNonNull(AROUND.get());
  }
}
