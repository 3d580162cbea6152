package io.antipode.javaagent;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageEntry;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import java.util.Collection;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Sends the lineage of the moment. The agent sees no class of the application, nor do its contexts
 * show a scope: the library marks the baggage member of a scope with a name, and leaves a function
 * among the system's properties that returns the text of that scope. It never throws.
 */
final class RenderingPropagator implements TextMapPropagator {
  /** The property that says that names are asked for. */
  static final String ASKS = "io.antipode.javaagent.asks";

  /** What begins the names of scopes, which go on with the library's own number and a dot. */
  static final String NAME = "antipode-scope=";

  /** What begins the property under which the library with that number leaves its function. */
  static final String RENDERS = "io.antipode.javaagent.renders.";

  private static final String MEMBER = "antipode";

  private final TextMapPropagator wrapped;

  RenderingPropagator(TextMapPropagator wrapped) {
    this.wrapped = wrapped;
  }

  @Override
  public Collection<String> fields() {
    return wrapped.fields();
  }

  @Override
  public <C> void inject(Context context, @Nullable C carrier, TextMapSetter<C> setter) {
    wrapped.inject(rendered(context), carrier, setter);
  }

  @Override
  public <C> Context extract(Context context, @Nullable C carrier, TextMapGetter<C> getter) {
    return wrapped.extract(context, carrier, getter);
  }

  private static Context rendered(Context context) {
    Baggage baggage = Baggage.fromContext(context);
    BaggageEntry member = baggage.getEntry(MEMBER);
    String name = member == null ? "" : member.getMetadata().getValue();
    if (!name.startsWith(NAME)) {
      return context; // Another's, or what an interceptor has rendered already.
    }
    String text = text(name);
    if (text == null) {
      return context;
    }
    var sent = baggage.toBuilder();
    return (text.isEmpty() ? sent.remove(MEMBER) : sent.put(MEMBER, text))
        .build()
        .storeInContext(context);
  }

  /** Returns the text of a scope; empty where it sends none, null where nobody knows it. */
  @SuppressWarnings("unchecked") // The library put it there.
  private static @Nullable String text(String name) {
    int dot = name.indexOf('.');
    if (dot < 0) {
      return null;
    }
    Object function = System.getProperties().get(RENDERS + name.substring(NAME.length(), dot));
    try {
      return function instanceof Function<?, ?> renders
          ? ((Function<String, String>) renders).apply(name)
          : null;
    } catch (RuntimeException error) { // What is sent then says that it may be old.
      return null;
    }
  }

  @Override
  public String toString() {
    return "RenderingPropagator(" + wrapped + ")";
  }
}
