package io.antipode.request;

import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Allowance;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.ImplicitContextKeyed;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The lineage of one request, while it grows. All branches of the request share it, through the
 * OpenTelemetry context; it is safe to use from any thread.
 *
 * <p>It is open while the request runs; once that has ended, branches that still run go on adding
 * to it, but answers to calls and later requests do not. Stopped, it holds nothing any more.
 */
public final class Scope implements ImplicitContextKeyed {
  /** The name of the baggage member. */
  public static final String MEMBER = "antipode";

  private static final ContextKey<Scope> KEY = ContextKey.named("antipode-scope");
  private static final Incomplete SNAPSHOT = new Incomplete("", "snapshot");
  private static final String NOTHING = Lineage.empty().serialize();

  private final Object lock = new Object();

  /** Held while a deferred read asks a server, which may take its time. */
  private final ReentrantLock sampling = new ReentrantLock();

  /** The promises, by id, that this branch fulfils itself: they never enter its lineage. */
  private final Set<Promise.Name> own;

  /** How many branches of the request run; shared with the scopes of branches. */
  private final AtomicInteger branches;

  /** For how long its reads may wait automatically; shared likewise. Made at the first one. */
  private final AtomicReference<@Nullable Allowance> allowance;

  // Under the lock, and read without it.
  private volatile Lineage lineage;
  private volatile Lineage came;
  private volatile List<Supplier<Lineage>> deferred = List.of();
  private volatile Map<Attachment.Key<?>, Attachment<?>> attached = Map.of();
  private volatile boolean open = true;
  private volatile boolean stopped;
  private volatile boolean answered;

  /** Whether it wrote, or may have: to do its work again would do so twice. */
  private volatile boolean wrote;

  /** Whether it is of work that is done for several requests. */
  private volatile boolean shared;

  /** What this scope has joined; what is added afterwards goes there, too. */
  private volatile @Nullable Scope joined;

  private volatile @Nullable Text text;
  private volatile @Nullable Object carrier;

  /** Whether an extraction opened it, and nobody has taken it over. */
  private final AtomicBoolean arrived = new AtomicBoolean();

  /** A text, and the lineage and settings that it was made of. */
  private record Text(Lineage lineage, Settings settings, String text) {
    @SuppressWarnings("ReferenceEquality") // To compare lineages costs as much as to encode one.
    boolean isOf(Lineage leaving, Settings current) {
      return lineage == leaving && settings == current;
    }
  }

  private Scope(Lineage lineage, Lineage came, Set<Promise.Name> own, @Nullable Scope outer) {
    this.lineage = lineage;
    this.came = came;
    this.own = own;
    this.branches = outer == null ? new AtomicInteger() : outer.branches;
    this.allowance = outer == null ? new AtomicReference<>() : outer.allowance;
  }

  /** Returns an open scope that is current nowhere, and starts from a lineage. */
  public static Scope startingFrom(Lineage lineage) {
    Scope scope = new Scope(Lineage.empty(), Lineage.empty(), Set.of(), null);
    scope.lineage = LineageText.held(scope.noted(Objects.requireNonNull(lineage, "lineage")));
    return scope;
  }

  /** Returns an open scope for a request that begins here, or with a message; current nowhere. */
  public static Scope opened(Lineage start) {
    return observed(startingFrom(start), false);
  }

  private static Scope observed(Scope scope, boolean isIncoming) {
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.opened(scope, isIncoming);
    }
    return scope;
  }

  /**
   * Returns an open scope for a request that came in, and is current nowhere.
   *
   * @param came the lineage of its headers, of which its answer says nothing
   * @param carrier what these were read from, by which the request is known again; null for none
   */
  public static Scope ofRequest(Lineage came, @Nullable Object carrier) {
    Scope scope = startingFrom(came);
    scope.came = scope.lineage;
    scope.carrier = carrier;
    return observed(scope, true);
  }

  /**
   * Returns an open scope for a request that was extracted just now, for whoever handles it to
   * {@link #takeOver take over}.
   *
   * @param came the lineage of its headers, of which its answer says nothing
   * @param carrier what these were read from; null for none
   */
  public static Scope extracted(Lineage came, @Nullable Object carrier) {
    Scope scope = ofRequest(came, carrier);
    scope.arrived.set(true);
    return scope;
  }

  /** Returns the scope of the current context, or null where it has none or that was stopped. */
  public static @Nullable Scope currentOrNull() {
    return fromContextOrNull(Context.current());
  }

  /** Returns the scope of a context, or null where it has none or that was stopped. */
  public static @Nullable Scope fromContextOrNull(Context context) {
    Scope held = heldBy(context);
    return held == null || held.stopped ? null : held;
  }

  /** Returns whether the current context has a scope whose lineage was discarded. */
  public static boolean isStoppedInCurrent() {
    Scope held = heldBy(Context.current());
    return held != null && held.stopped;
  }

  /** Returns whether a context has a scope, also where that was stopped. */
  public static boolean isIn(Context context) {
    return heldBy(context) != null;
  }

  /** Returns what the scopes of one request and of its branches have in common, and no others. */
  public Object request() {
    return branches;
  }

  /** Returns whether its lineage was discarded. */
  boolean isStopped() {
    return stopped;
  }

  static @Nullable Scope heldBy(Context context) {
    return context.get(KEY);
  }

  /**
   * Returns a context with this scope, and with the baggage member that says so. Where that is
   * removed the scope stays, but is sent no more. Where the library is disabled, the context as it
   * is.
   */
  @Override
  public Context storeInContext(Context context) {
    if (KillSwitch.isDisabled()) {
      return context;
    }
    Baggage baggage = Baggage.fromContext(context);
    if (heldBy(context) == this && baggage.getEntryValue(MEMBER) != null) {
      return context;
    }
    return baggage.toBuilder()
        .put(MEMBER, snapshot(), AgentScopes.name(this))
        .build()
        .storeInContext(context)
        .with(KEY, this);
  }

  // What it holds.

  /** Returns the lineage so far; reads that deferred their position take it now. */
  public Lineage lineage() {
    if (!deferred.isEmpty()) {
      sample();
    }
    return lineage;
  }

  /** Returns the lineage so far, without what reads would have to ask for. */
  public Lineage known() {
    return lineage;
  }

  /** Returns for how long reads of the request may wait automatically, all of them together. */
  public Allowance allowance() {
    Allowance held = allowance.get();
    if (held != null) {
      return held;
    }
    Settings settings = Settings.current();
    Duration most = settings.maxTimeout();
    Duration auto = settings.autoTimeout();
    Allowance made = new Allowance(auto.compareTo(most) < 0 ? auto : most);
    return allowance.compareAndSet(null, made) ? made : allowance();
  }

  /** Returns the lineage so far, with how many branches of the request still run. */
  public Lineage leaving() {
    return lineage().branching(branches.get());
  }

  /** Returns the datastores in which it has written, in transactions that are open. */
  public Set<String> uncommitted() {
    return OpenWrites.in(this).stream()
        .map(OpenWrites.Transaction::datastore)
        .collect(Collectors.toUnmodifiableSet());
  }

  /** Returns the promises, by id, that this branch fulfils itself. */
  public Set<Promise.Name> own() {
    return own;
  }

  /** Returns whether its response has left. */
  public boolean isAnswered() {
    return answered;
  }

  /** Returns whether the request still runs. */
  public boolean isOpen() {
    return open;
  }

  /** Returns what the headers of the request were read from; null where that is not known. */
  public @Nullable Object carrier() {
    return carrier;
  }

  /**
   * Adopts this scope for the request that a server handles, once; returns whether an extraction of
   * that request opened it.
   *
   * @param isOfRequest whether an object that was extracted from is of the request
   */
  public boolean takeOver(Predicate<Object> isOfRequest) {
    Object from = carrier;
    return from != null && isOfRequest.test(from) && arrived.compareAndSet(true, false);
  }

  // What enters.

  /** Adds a write, with the current hour where it has none, and returns the lineage with it. */
  public Lineage append(WriteId write) {
    Objects.requireNonNull(write, "write");
    WriteId minted = write.writtenHour() == 0 ? write.writtenAt(Time.hour()) : write;
    if (!write.isCovering()) {
      wrote = true;
    }
    if (answered && !write.isCovering()) {
      Counts.count("after_response_write", write.datastore());
    }
    Lineage held = merge(Lineage.of(minted));
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.wrote(this, minted);
    }
    return held;
  }

  /** Adds everything of a lineage, and returns the lineage with it. */
  public Lineage merge(Lineage other) {
    Objects.requireNonNull(other, "other");
    Lineage mine = own.isEmpty() ? other : other.withoutPromises(own);
    Lineage held = enter(mine);
    Scope outer = joined;
    if (outer != null) {
      outer.merge(mine);
    }
    return held;
  }

  private Lineage enter(Lineage other) {
    Lineage added = noted(own.isEmpty() ? other : other.withoutPromises(own));
    synchronized (lock) {
      if (!stopped) {
        lineage = LineageText.held(lineage.merge(added));
      }
      return lineage;
    }
  }

  /** Returns a lineage without notes, which a dry run keeps apart and others pass on. */
  private Lineage noted(Lineage other) {
    Observer observer = Observers.dryRun();
    return observer == null ? other : observer.absorb(this, other);
  }

  /** Adds what came with another extraction of the same request. */
  public void receive(Lineage other) {
    synchronized (lock) {
      if (!stopped) {
        came = LineageText.held(came.merge(other));
      }
    }
    merge(other);
  }

  /** Notes that something of a subject is missing, and why. */
  public void markIncomplete(String subject, String reason) {
    wrote = true;
    merge(Lineage.empty().marked(new Incomplete(subject, reason)));
  }

  /** Drops a write, and returns the lineage without it. */
  public Lineage remove(WriteId write) {
    synchronized (lock) {
      lineage = lineage.remove(write);
      return lineage;
    }
  }

  /** Drops promises of which nothing can be known any more. */
  public void forget(Promise... promises) {
    Set<Promise.Name> names = new HashSet<>();
    for (Promise promise : promises) {
      names.add(promise.name());
    }
    synchronized (lock) {
      lineage = lineage.withoutPromises(names);
    }
  }

  /**
   * Adds what a sample returns, when somebody asks for the lineage.
   *
   * @param sample returns the same whenever it is called, asks a server at most once, and throws
   *     nothing; it is called from whatever thread asks
   */
  public void defer(Supplier<Lineage> sample) {
    synchronized (lock) {
      if (!stopped && !deferred.contains(sample)) {
        List<Supplier<Lineage>> more = new ArrayList<>(deferred);
        more.add(sample);
        deferred = List.copyOf(more);
      }
    }
    Scope outer = joined;
    if (outer != null) {
      outer.defer(sample);
    }
  }

  private void sample() {
    sampling.lock();
    try {
      Set<Supplier<Lineage>> asked = Collections.newSetFromMap(new IdentityHashMap<>());
      for (Supplier<Lineage> next = next(asked); next != null; next = next(asked)) {
        Supplier<Lineage> first = next;
        boolean isLast = !(first instanceof Standing standing) || standing.isOver();
        enter(first.get());
        synchronized (lock) {
          // Only now: until it is in, who asks for the lineage waits for it.
          deferred = deferred.stream().filter(each -> each != first || !isLast).toList();
        }
      }
    } finally {
      sampling.unlock();
    }
  }

  private @Nullable Supplier<Lineage> next(Set<Supplier<Lineage>> asked) {
    return deferred.stream().filter(asked::add).findFirst().orElse(null);
  }

  // Attachments.

  /** Keeps something here until the request stops, joined with what is attached already. */
  public <A extends Attachment<A>> void attach(Attachment.Key<A> key, A attachment) {
    synchronized (lock) {
      if (!stopped) {
        A held = key.type().cast(attached.get(key));
        Map<Attachment.Key<?>, Attachment<?>> more = new HashMap<>(attached);
        more.put(key, held == null ? attachment : held.joined(attachment));
        attached = Map.copyOf(more);
      }
    }
  }

  /** Returns what is attached under a key, or null. */
  public <A extends Attachment<A>> @Nullable A attachment(Attachment.Key<A> key) {
    return key.type().cast(attached.get(key));
  }

  private <A extends Attachment<A>> void attachAgain(Scope from, Attachment.Key<A> key) {
    A held = from.attachment(key);
    if (held != null) {
      attach(key, held);
    }
  }

  private static <A extends Attachment<A>> Attachment<?> branched(
      Scope outer, Attachment.Key<A> key, Set<String> own) {
    return Objects.requireNonNull(outer.attachment(key)).branched(own);
  }

  // How it goes on.

  /** Says that a branch of the request begins: what leaves before it is over says so. */
  public void began() {
    branches.incrementAndGet();
  }

  /** Says that a branch of the request is over. */
  public void finished() {
    branches.decrementAndGet();
  }

  /** Ends the request. Branches that still run keep the lineage, and their writes enter. */
  public void end() {
    open = false;
    carrier = null;
  }

  /** Discards the lineage and what is attached, for all branches. Nothing enters any more. */
  public void stop() {
    synchronized (lock) {
      open = false;
      stopped = true;
      lineage = Lineage.empty();
      deferred = List.of();
      attached = Map.of();
    }
  }

  // The branch that fulfils a promise.

  /**
   * Returns a scope, current nowhere, that begins with everything of this one but a promise, for
   * the branch that fulfils it and then {@link #join joins}.
   */
  public Scope fulfilling(Promise promise) {
    Set<Promise.Name> mine = new HashSet<>(own);
    mine.add(promise.name());
    Set<String> ids = mine.stream().map(Promise.Name::id).collect(Collectors.toUnmodifiableSet());
    synchronized (lock) {
      Scope inner = new Scope(lineage.withoutPromises(mine), came, Set.copyOf(mine), this);
      inner.answered = answered;
      inner.deferred = deferred;
      Map<Attachment.Key<?>, Attachment<?>> branched = new HashMap<>();
      attached.keySet().forEach(key -> branched.put(key, branched(this, key, ids)));
      inner.attached = Map.copyOf(branched);
      return inner;
    }
  }

  /** Ends, and hands over to the scope around what was gathered, also what comes later. */
  public void join(Scope outer) {
    if (stopped) {
      outer.stop();
      return;
    }
    end();
    joined = outer; // First: what is added from now on is handed on, or is in what follows.
    outer.merge(lineage);
    deferred.forEach(outer::defer);
    attached.keySet().forEach(key -> outer.attachAgain(this, key));
  }

  // Work that is done for several requests.

  /**
   * Returns a scope, current nowhere, for work that is done once for several requests.
   *
   * @param start what it depends on as it begins
   * @param own the promises that all of them fulfil themselves
   * @param waiting what those depend on besides, whose positions their reads deferred
   * @param attached what is attached to them
   * @param alone of whose request all of them are; null where they are of several
   */
  static Scope working(
      Lineage start,
      Set<Promise.Name> own,
      List<Supplier<Lineage>> waiting,
      Map<Attachment.Key<?>, Attachment<?>> attached,
      @Nullable Scope alone) {
    Scope work = new Scope(Lineage.empty(), Lineage.empty(), own, null);
    if (alone != null) {
      work.allowance.set(alone.allowance());
    }
    work.enter(start);
    work.deferred = List.copyOf(waiting);
    work.attached = Map.copyOf(attached);
    work.shared = true;
    work.joined = new Scope(Lineage.empty(), Lineage.empty(), own, work);
    return work;
  }

  /** Returns what was added to such a scope, with its notes and how many branches still run. */
  Lineage gained() {
    Scope added = Objects.requireNonNull(joined, "a scope of shared work");
    lineage(); // What was deferred is asked for once, here and there.
    return stopped ? Lineage.empty() : added.withNotes(added.leaving());
  }

  /**
   * Returns what a value depends on that somebody keeps for others now: in shared work what that
   * added; empty without a scope.
   */
  public static Lineage ofKeptValue() {
    Scope held = currentOrNull();
    if (held == null) {
      return Lineage.empty();
    }
    return held.shared ? held.gained() : held.lineage();
  }

  /** Returns whether it wrote, or may have. */
  public boolean hasWritten() {
    return wrote;
  }

  /** Returns what is known to it without asking anybody, with its notes. */
  Lineage brought() {
    return withNotes(lineage);
  }

  private Lineage withNotes(Lineage of) {
    Lineage.Builder more = Lineage.builder();
    notes(Observers.dryRun()).forEach(more::unknown);
    return of.merge(more.build());
  }

  List<Supplier<Lineage>> deferred() {
    return deferred;
  }

  Map<Attachment.Key<?>, Attachment<?>> attached() {
    return attached;
  }

  // Text.

  /** Returns the text of the lineage as it leaves this process in baggage. */
  public String text() {
    Settings settings = Settings.current();
    Observer observer = Observers.dryRun();
    leaves();
    if (observer != null) {
      return LineageText.sent(leaving(), observer.notes(this));
    }
    Lineage leaving = leaving();
    Text held = text;
    if (held != null && held.isOf(leaving, settings)) {
      return held.text;
    }
    String made = LineageText.sent(leaving, Set.of());
    text = new Text(leaving, settings, made);
    return made;
  }

  /** Returns the same of this lineage and others together: what is shortened is their merge. */
  public String textWith(Lineage... others) {
    leaves();
    Observer observer = Observers.dryRun();
    Lineage together = leaving().merge(others);
    return LineageText.sent(together, observer == null ? Set.of() : observer.notes(this));
  }

  /** Notes that something is sent, whether or not this lineage goes with it. */
  public void leaves() {
    OpenWrites.tellOfUnsent(this);
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.leaves(this);
    }
  }

  /**
   * Returns the text that the answer of the request carries back: what was added to what came.
   * Writes from now on are counted as written after the response.
   */
  public String answer() {
    Lineage added = added();
    leaves();
    Collection<String> notes = notes(Observers.dryRun());
    return added.isEmpty() && notes.isEmpty() ? NOTHING : LineageText.sent(added, notes);
  }

  /**
   * Returns what was added to what came, as the response starts. Writes from now on are counted as
   * written after it.
   */
  public Lineage added() {
    answered = true;
    return lineage().beyond(came).branching(branches.get());
  }

  /** The lineage of this moment, with the mark that it may be older than it seems. */
  private String snapshot() {
    Lineage marked = lineage.marked(SNAPSHOT);
    return LineageText.sent(marked, notes(Observers.dryRun()));
  }

  private Collection<String> notes(@Nullable Observer observer) {
    return observer == null ? Set.of() : observer.notes(this);
  }

  @Override
  public String toString() {
    return "Scope("
        + (stopped ? "stopped" : open ? "open" : "ended")
        + ", "
        + lineage.serialize()
        + ")";
  }
}
