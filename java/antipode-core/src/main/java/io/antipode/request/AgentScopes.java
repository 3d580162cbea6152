package io.antipode.request;

import io.antipode.runtime.KillSwitch;
import io.opentelemetry.api.baggage.BaggageEntryMetadata;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The names by which the extension of the Java agent asks for the texts of scopes. It sees no class
 * of an application; what both see are baggage, the system's properties and the JDK. Where there is
 * no such extension, members have no names.
 */
final class AgentScopes {
  private static final String ASKS = "io.antipode.javaagent.asks";
  private static final String RENDERS = "io.antipode.javaagent.renders.";

  /** Nobody else can make up the names of this class: they may come in with others' baggage. */
  private static final String NUMBER = UUID.randomUUID().toString();

  private static final String NAME = "antipode-scope=" + NUMBER + ".";

  private static final Map<String, Held> SCOPES = new ConcurrentHashMap<>();
  private static final ReferenceQueue<Scope> GONE = new ReferenceQueue<>();
  private static final AtomicLong NEXT = new AtomicLong();
  private static final boolean IS_ASKED = begin();

  private static final class Held extends WeakReference<Scope> {
    private final String name;

    Held(Scope scope, String name) {
      super(scope, GONE);
      this.name = name;
    }
  }

  private AgentScopes() {}

  private static boolean begin() {
    boolean isAsked = Boolean.getBoolean(ASKS) && !KillSwitch.isDisabled();
    if (isAsked) {
      Function<String, @Nullable String> renders = AgentScopes::text;
      System.getProperties().put(RENDERS + NUMBER, renders);
    }
    return isAsked;
  }

  /** Returns what stands next to the member of a scope. */
  static BaggageEntryMetadata name(Scope scope) {
    if (!IS_ASKED) {
      return BaggageEntryMetadata.empty();
    }
    while (GONE.poll() instanceof Held gone) {
      SCOPES.remove(gone.name);
    }
    String name = NAME + NEXT.getAndIncrement();
    SCOPES.put(name, new Held(scope, name));
    return BaggageEntryMetadata.create(name);
  }

  /** Returns what a scope sends now; empty where it was stopped, null where it is gone. */
  private static @Nullable String text(String name) {
    Held held = SCOPES.get(name);
    Scope scope = held == null ? null : held.get();
    return scope == null ? null : scope.isStopped() ? "" : scope.text();
  }
}
