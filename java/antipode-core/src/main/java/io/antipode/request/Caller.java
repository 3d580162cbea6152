package io.antipode.request;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.lang.ref.WeakReference;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Who asks for work that others may ask for, too: what it depends on, as it asks. It does not keep
 * the caller's scope: nobody may be there any more to get what the work added. For the library's
 * own modules.
 */
public final class Caller {
  private static final Incomplete UNKNOWN = new Incomplete("", "unknown_item");

  private final @Nullable WeakReference<Scope> scope;
  private final Lineage brought;
  private final List<Supplier<Lineage>> deferred;
  private final Map<Attachment.Key<?>, Attachment<?>> attached;
  private final Set<Promise.Name> own;

  private Caller(@Nullable Scope scope) {
    this.scope = scope == null ? null : new WeakReference<>(scope);
    // In this order: what is sampled meanwhile is in the lineage by then.
    this.deferred = scope == null ? List.of() : scope.deferred();
    this.brought = scope == null ? Lineage.empty() : scope.brought();
    this.attached = new HashMap<>();
    if (scope != null) {
      scope.attached().entrySet().stream()
          .filter(each -> each.getValue().isForSharedWork())
          .forEach(each -> attached.put(each.getKey(), each.getValue()));
    }
    this.own = scope == null ? Set.of() : scope.own();
  }

  /** Returns a caller in the current scope; without one, it depends on nothing and gets nothing. */
  public static Caller current() {
    return new Caller(Scope.currentOrNull());
  }

  /** Returns the promises that it fulfils itself, which the work must not wait for. */
  public Set<Promise.Name> own() {
    return own;
  }

  /** Returns what names each dependency that it brings, however it was learnt. */
  public Set<Object> dependencies() {
    Set<Object> names = new HashSet<>();
    Lineage known = brought.merge(deferred.stream().map(Supplier::get).toArray(Lineage[]::new));
    known.writes().forEach(each -> names.add(name(each)));
    known.promises().forEach(each -> names.add(name(each)));
    demanded().forEach(each -> names.add(name(each)));
    return names;
  }

  /** Returns what is known to be missing of what it depends on. */
  public Set<Incomplete> marks() {
    Set<Incomplete> marks = new HashSet<>(brought.incomplete());
    if (!brought.withoutNotes().unknown().isEmpty()) {
      marks.add(UNKNOWN);
    }
    return marks;
  }

  /** Returns whether work for others, begun before this one asked, saw what it depends on. */
  public boolean isCoveredBy(Collection<Caller> others) {
    if (scope == null) {
      return true;
    }
    Lineage known =
        others.stream().map(each -> each.brought).reduce(Lineage.empty(), Lineage::merge);
    return deferred.isEmpty()
        && demanded().isEmpty()
        && brought.beyond(known).withoutNotes().isEmpty();
  }

  /** Depends on what the work added. */
  public void take(Lineage gained) {
    Scope held = scope == null ? null : scope.get();
    if (held != null && !gained.isEmpty()) {
      held.merge(gained);
    }
  }

  /** Returns what names a dependency, whenever it was written. */
  public static Object name(Dependency dependency) {
    if (dependency instanceof Promise promise) {
      return promise.name();
    }
    WriteId write = (WriteId) dependency;
    String opaque = write.opaqueVersion();
    Object version = opaque == null ? (Object) write.version() : opaque;
    return List.of(write.datastore(), write.key(), version);
  }

  /** Returns a scope, current nowhere, that waits for what callers do who have the same own. */
  static Scope scopeFor(Collection<Caller> callers) {
    Lineage start = Lineage.empty();
    Set<Supplier<Lineage>> waiting = new HashSet<>();
    Map<Attachment.Key<?>, Attachment<?>> attached = new HashMap<>();
    Set<@Nullable Scope> scopes = new HashSet<>();
    Set<Promise.Name> own = Set.of();
    for (Caller each : callers) {
      start = start.merge(each.brought);
      waiting.addAll(each.deferred);
      each.attached.forEach((key, value) -> attached.merge(key, value, Caller::joined));
      scopes.add(each.scope == null ? null : each.scope.get());
      own = each.own;
    }
    Scope alone = scopes.size() == 1 ? scopes.iterator().next() : null;
    return Scope.working(start, own, List.copyOf(waiting), attached, alone);
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // Both are of the key's type.
  private static Attachment<?> joined(Attachment held, Attachment later) {
    return (Attachment<?>) held.joined(later);
  }

  private Set<Dependency> demanded() {
    Set<Dependency> demanded = new HashSet<>();
    attached.values().forEach(each -> demanded.addAll(each.demanded()));
    return demanded;
  }
}
