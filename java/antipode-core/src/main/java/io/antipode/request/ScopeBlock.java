package io.antipode.request;

import io.antipode.Settings;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A block in which a scope is current. Close it in the thread that opened it:
 *
 * <pre>{@code
 * try (ScopeBlock request = Antipode.scope()) {
 *   ...
 * }
 * }</pre>
 */
public final class ScopeBlock implements AutoCloseable {
  private static final ContextKey<ScopeBlock> KEY = ContextKey.named("antipode-scope-block");

  private final Scope scope;
  private final Consumer<Scope> end;
  private final Thread thread = Thread.currentThread();
  private final Context around = Context.current();
  private volatile boolean runs = true;
  private final io.opentelemetry.context.@Nullable Scope entered;

  @SuppressWarnings("MustBeClosedChecker") // It is closed with the block.
  private ScopeBlock(Scope scope, Context context, Consumer<Scope> end) {
    this.scope = scope;
    this.end = end;
    this.entered =
        KillSwitch.isDisabled()
            ? null
            : scope.storeInContext(context).with(KEY, this).makeCurrent();
  }

  /** Makes a scope current in a context, for a block that ends in its way. */
  public static ScopeBlock enter(Scope scope, Context context, Consumer<Scope> end) {
    return new ScopeBlock(scope, context, end);
  }

  /**
   * Makes a scope current, in the current context, for a block whose end does not end the scope.
   */
  public static ScopeBlock within(Scope scope) {
    return within(scope, Context.current());
  }

  /** Makes a scope current in a context, for a block whose end does not end the scope. */
  public static ScopeBlock within(Scope scope, Context context) {
    return enter(
        Objects.requireNonNull(scope, "scope"),
        Objects.requireNonNull(context, "context"),
        goesOn -> {});
  }

  /** Returns the scope. */
  public Scope scope() {
    return scope;
  }

  /**
   * Ends the scope, and makes current again what was current before. Where another block was opened
   * within this one and still runs, that stays current.
   */
  @Override
  public void close() {
    if (runs) {
      end.accept(scope);
      leave();
    }
  }

  /**
   * Makes current again what was current before, as {@link #close} does, and does not end the
   * scope: what it is of goes on in other threads.
   */
  public void leave() {
    if (!runs) {
      return;
    }
    runs = false;
    if (entered != null && Thread.currentThread() == thread) {
      leave(entered);
    }
  }

  private void leave(io.opentelemetry.context.Scope token) {
    ScopeBlock current = Context.current().get(KEY);
    if (current != null && current != this && current.runsHere()) {
      String place = CallSite.find(Settings.current().appPackages());
      Counts.count("scope_out_of_order");
      Counts.logOnce(
          "scope_out_of_order",
          "",
          place,
          () -> place + ": a scope ends before one that was opened within it, or in its place");
      return;
    }
    token.close();
    restore(stillRunning(around));
  }

  private static Context stillRunning(Context around) {
    Context context = around;
    ScopeBlock outer = context.get(KEY);
    while (outer != null && outer.isOverHere()) {
      context = outer.around;
      outer = context.get(KEY);
    }
    return context;
  }

  private boolean runsHere() {
    return runs && Thread.currentThread() == thread;
  }

  private boolean isOverHere() {
    return !runs && Thread.currentThread() == thread;
  }

  /** Makes a context current that nobody will leave: what is left then was left already. */
  @SuppressWarnings("MustBeClosedChecker")
  private static void restore(Context context) {
    if (Context.current() != context) {
      context.makeCurrent();
    }
  }
}
