package io.antipode.request;

import io.antipode.lineage.Lineage;
import io.opentelemetry.context.Context;
import java.util.Collection;

/**
 * One run of work that is done once for several requests: its scope depends on what all of them
 * depend on. For the library's own modules.
 */
public final class SharedScope {
  private final Scope scope;

  /** Begins with what callers depend on who fulfil the same promises. */
  public SharedScope(Collection<Caller> callers) {
    this.scope = Caller.scopeFor(callers);
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.opened(scope, false);
    }
  }

  /** Makes it current in a context, for a block whose end does not end the work. */
  public ScopeBlock enter(Context context) {
    return ScopeBlock.within(scope, context);
  }

  /** Ends the work; returns what it added, for each of its callers. */
  public Lineage end() {
    Lineage gained = scope.gained();
    scope.end();
    return gained;
  }

  /** Returns whether it wrote, or may have: to do it again would do so twice. */
  public boolean hasWritten() {
    return scope.hasWritten();
  }
}
