package io.antipode.propagation;

import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Wraps a propagator of baggage: a request that comes in gets a scope, and one that goes out
 * carries the lineage of that moment. It never throws.
 *
 * <pre>{@code
 * ContextPropagators.create(AntipodePropagator.wrap(TextMapPropagator.composite(
 *     W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance())))
 * }</pre>
 */
public final class AntipodePropagator implements TextMapPropagator {
  private final TextMapPropagator wrapped;

  private AntipodePropagator(TextMapPropagator wrapped) {
    this.wrapped = wrapped;
  }

  /**
   * Returns a propagator that does what another one does, and knows scopes. One that does so
   * already, or any one where the library is disabled, is returned as it is.
   *
   * @throws ConfigurationException if it carries no baggage, or a setting is not what it takes
   */
  public static TextMapPropagator wrap(TextMapPropagator propagator) {
    if (propagator instanceof AntipodePropagator || KillSwitch.isDisabled()) {
      return propagator;
    }
    Settings.current();
    if (!carriesBaggage(propagator)) {
      throw new ConfigurationException(
          "the propagator carries no baggage, so no lineage can travel: add"
              + " W3CBaggagePropagator, or set otel.propagators=tracecontext,baggage");
    }
    return new AntipodePropagator(propagator);
  }

  /** Returns the propagator of W3C baggage, with scopes. */
  public static TextMapPropagator baggage() {
    return wrap(W3CBaggagePropagator.getInstance());
  }

  /** Returns whether a propagator carries baggage, so that it can be wrapped. */
  public static boolean carriesBaggage(TextMapPropagator propagator) {
    return propagator.fields().contains(Headers.BAGGAGE);
  }

  @Override
  public Collection<String> fields() {
    return wrapped.fields();
  }

  // Out.

  @Override
  public <C> void inject(Context context, @Nullable C carrier, TextMapSetter<C> setter) {
    Rendering<C> rendering = null;
    try {
      rendering = rendering(context, setter);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request goes without a lineage", error);
    }
    if (rendering == null) {
      wrapped.inject(withoutMember(context), carrier, setter);
      return;
    }
    wrapped.inject(withoutMember(context), carrier, rendering);
    rendering.finish(carrier);
  }

  /** What renders the lineage of a context; null where it sends none. */
  private static <C> @Nullable Rendering<C> rendering(Context context, TextMapSetter<C> setter) {
    if (Baggage.fromContext(context).getEntryValue(Scope.MEMBER) == null) {
      return null;
    }
    Scope scope = Scope.fromContextOrNull(context);
    return scope == null ? null : new Rendering<>(setter, scope);
  }

  /** The context without what stands for the lineage of its scope, also of one that was stopped. */
  private static Context withoutMember(Context context) {
    Baggage baggage = Baggage.fromContext(context);
    return baggage.getEntryValue(Scope.MEMBER) == null || !Scope.isIn(context)
        ? context
        : baggage.toBuilder().remove(Scope.MEMBER).build().storeInContext(context);
  }

  /** Sets what the wrapped propagator sets, and the member before the others'. */
  private static final class Rendering<C> implements TextMapSetter<C> {
    private final TextMapSetter<C> setter;
    private final Scope scope;
    private final String text;
    private boolean done;

    Rendering(TextMapSetter<C> setter, Scope scope) {
      this.setter = setter;
      this.scope = scope;
      text = scope.text();
    }

    @Override
    public void set(@Nullable C carrier, String key, String value) {
      boolean ours = key.equals(Headers.BAGGAGE);
      done |= ours;
      setter.set(carrier, key, ours ? Headers.withMember(value, together(given(carrier))) : value);
    }

    /** The wrapped propagator sets no header where it has no members. */
    void finish(@Nullable C carrier) {
      if (!done) {
        String given = given(carrier); // It keeps its members.
        setter.set(carrier, Headers.BAGGAGE, Headers.withMember(given, together(given)));
      }
    }

    /** The lineage, merged with those in a header that the application has set. */
    private String together(@Nullable String given) {
      List<String> there = given == null ? List.of() : Headers.members(List.of(given));
      return OutgoingCall.together(scope, text, there);
    }

    private static @Nullable String given(@Nullable Object carrier) {
      return carrier instanceof Map<?, ?> map && map.get(Headers.BAGGAGE) instanceof String header
          ? header
          : null;
    }
  }

  // In.

  @Override
  public <C> Context extract(Context context, @Nullable C carrier, TextMapGetter<C> getter) {
    Context found = wrapped.extract(context, carrier, new Others<>(getter));
    try {
      return withScope(context, found, carrier, getter);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "the headers of a request cannot be read", error);
      return Scope.ofRequest(LineageText.unreadable(Headers.BAGGAGE, "headers"), carrier)
          .storeInContext(found);
    }
  }

  private static <C> Context withScope(
      Context context, Context found, @Nullable C carrier, TextMapGetter<C> getter) {
    Scope held = openIn(context);
    if (held == null && context != Context.current()) {
      // Before us in a composite, a propagator of others may begin with an empty context.
      Scope current = openIn(Context.current());
      held = current != null && carrier != null && current.carrier() == carrier ? current : null;
    }
    if (held != null && carrier != null && held.carrier() == carrier) {
      return held.storeInContext(found);
    }
    Lineage came =
        Incoming.lineage(values(getter, carrier), isSaid(getter.get(carrier, Headers.SENT)));
    if (held != null) {
      held.receive(came);
      return held.storeInContext(found);
    }
    return Scope.extracted(came, carrier).storeInContext(found);
  }

  private static @Nullable Scope openIn(Context context) {
    Scope scope = Scope.fromContextOrNull(context);
    return scope == null || !scope.isOpen() ? null : scope;
  }

  private static boolean isSaid(@Nullable String sent) {
    return sent != null && !sent.isEmpty();
  }

  /** An API before 1.50, as Spring Boot 3 brings it, gives the first header alone. */
  private static final boolean GIVES_ALL =
      Arrays.stream(TextMapGetter.class.getMethods())
          .anyMatch(method -> method.getName().equals("getAll"));

  private static <C> List<String> values(TextMapGetter<C> getter, @Nullable C carrier) {
    if (!GIVES_ALL) {
      String first = getter.get(carrier, Headers.BAGGAGE);
      return first == null ? List.of() : List.of(first);
    }
    List<String> values = new ArrayList<>();
    Iterator<String> all = getter.getAll(carrier, Headers.BAGGAGE);
    while (all.hasNext()) {
      values.add(all.next());
    }
    return values;
  }

  /** Reads headers without members of ours. */
  private record Others<C>(TextMapGetter<C> getter) implements TextMapGetter<C> {
    @Override
    public Iterable<String> keys(C carrier) {
      return getter.keys(carrier);
    }

    @Override
    public @Nullable String get(@Nullable C carrier, String key) {
      String value = getter.get(carrier, key);
      return value == null || !key.equals(Headers.BAGGAGE) ? value : others(value);
    }

    @Override
    public Iterator<String> getAll(@Nullable C carrier, String key) {
      Iterator<String> all = getter.getAll(carrier, key);
      if (!key.equals(Headers.BAGGAGE)) {
        return all;
      }
      List<String> kept = new ArrayList<>();
      all.forEachRemaining(
          value -> {
            String rest = others(value);
            if (rest != null) {
              kept.add(rest);
            }
          });
      return kept.iterator();
    }

    private static @Nullable String others(String value) {
      String rest = Headers.withoutMember(value);
      return rest.isEmpty() ? null : rest;
    }
  }

  @Override
  public String toString() {
    return "AntipodePropagator(" + wrapped + ")";
  }
}
