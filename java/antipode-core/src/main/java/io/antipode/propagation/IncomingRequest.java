package io.antipode.propagation;

import io.antipode.lineage.Lineage;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.context.Context;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A request that a server handles, in a scope of its own from its headers to its answer. Close it
 * in the thread that began it; other threads that work for it use its {@link #context}.
 */
public final class IncomingRequest implements AutoCloseable {
  private static final String NOTHING = Lineage.empty().serialize();

  private final Scope scope;
  private final ScopeBlock block;
  private final Context context;
  private final boolean asked;

  private IncomingRequest(Scope scope, boolean asked) {
    this.scope = scope;
    this.asked = asked;
    this.block = ScopeBlock.within(scope);
    this.context = Context.current();
  }

  /**
   * Begins a request in the current context. Where an instrumentation has extracted it already,
   * that scope is adopted; a scope that was open before, around the server or around an in-process
   * call, is not this request's.
   *
   * @param baggage the values of all baggage headers
   * @param sent whether the request has a header {@code antipode-sent}
   * @param carrier what an extraction of this request reads from; null for none
   * @param isOfRequest whether an object that was extracted from is of this request
   */
  public static IncomingRequest begin(
      List<String> baggage, boolean sent, @Nullable Object carrier, Predicate<Object> isOfRequest) {
    Scope held = Scope.currentOrNull();
    Scope scope =
        held != null && held.takeOver(isOfRequest)
            ? held
            : Scope.ofRequest(Incoming.lineage(baggage, sent), carrier);
    return new IncomingRequest(scope, sent || baggage.stream().anyMatch(each -> !each.isEmpty()));
  }

  /** Returns the scope of the request. */
  public Scope scope() {
    return scope;
  }

  /** Returns the context of the request, for whatever thread goes on with it. */
  public Context context() {
    return context;
  }

  /**
   * Returns what the answer says in {@code antipode-lineage}; null where nothing was added, and
   * whoever sent the request has no lineage to merge an answer into. Writes from now on are counted
   * as written after the response.
   */
  public @Nullable String answer() {
    String text = scope.answer();
    return asked || !text.equals(NOTHING) ? text : null;
  }

  /** Leaves the context of the request in this thread, and lets it go on in others. */
  public void leave() {
    block.close();
  }

  /** Ends the request. */
  @Override
  public void close() {
    scope.end();
    block.close();
  }
}
