package io.antipode;

import io.antipode.barrier.AsOfNow;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Branches;
import io.antipode.request.Observer;
import io.antipode.request.Observers;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.function.Supplier;

/**
 * What a program does with the lineage of its request.
 *
 * <p>A request runs in a {@link Scope}: a server integration opens it, or {@link #scope()} does.
 * Instrumented clients then add what they write and read, and send the lineage with their calls.
 */
public final class Antipode {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final ContextKey<Root> ROOT = ContextKey.named("antipode-root");
  private static final int PROMISE_BYTES = 16;

  /** A scope without a block, and what was current before it. */
  private record Root(Scope scope, Context around) {}

  private Antipode() {}

  // Scopes.

  /** Opens a block that is a request of its own, with an empty lineage. */
  public static ScopeBlock scope() {
    return scope(Lineage.empty());
  }

  /** Opens a block that is a request of its own, and starts from a lineage. */
  public static ScopeBlock scope(Lineage start) {
    return ScopeBlock.enter(Scope.opened(start), Context.current(), Scope::end);
  }

  /**
   * Opens a block that is a request of its own, and starts from the lineage of a text.
   *
   * @throws LineageDecodeException if the text is no lineage
   */
  public static ScopeBlock scope(String start) {
    return scope(LineageText.received(start));
  }

  /**
   * Begins a request here, with an empty lineage, until {@link #stop()}: for code that has no block
   * to run it in.
   */
  @SuppressWarnings("MustBeClosedChecker")
  public static void root() {
    if (KillSwitch.isDisabled()) {
      return;
    }
    Scope scope = Scope.opened(Lineage.empty());
    Context around = Context.current();
    scope.storeInContext(around).with(ROOT, new Root(scope, around)).makeCurrent();
  }

  /** Discards the current lineage, for all branches of the request; without a scope nothing. */
  @SuppressWarnings("MustBeClosedChecker")
  public static void stop() {
    Context context = Context.current();
    Scope scope = Scope.fromContextOrNull(context);
    if (scope == null) {
      return;
    }
    scope.stop();
    Root root = context.get(ROOT);
    if (root != null && root.scope == scope) {
      root.around.makeCurrent();
    }
  }

  /** Returns the current lineage; the empty one without a scope. */
  public static Lineage current() {
    Scope scope = Scope.currentOrNull();
    return scope == null ? Lineage.empty() : scope.lineage();
  }

  /**
   * Returns the datastores in which the current request has written, in transactions that are open;
   * none without a scope. No other connection sees those writes, and no barrier waits for them: a
   * router of reads sends those of such a datastore to its primary, within that transaction.
   * Instrumented clients of MySQL, MariaDB and MongoDB know of transactions.
   */
  public static Set<String> uncommitted() {
    Scope scope = Scope.currentOrNull();
    return scope == null ? Set.of() : scope.uncommitted();
  }

  /**
   * Adds a write to the current lineage. One without a written hour gets the current one.
   *
   * @return the lineage with it
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  public static Lineage append(WriteId write) {
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      Recording.unscoped("append", write.datastore(), Settings.current().onUnscoped());
      return Lineage.of(write);
    }
    return scope.append(write);
  }

  /** Drops a write from the current lineage, and returns what is left. */
  public static Lineage remove(WriteId write) {
    Objects.requireNonNull(write, "write");
    Scope scope = Scope.currentOrNull();
    return scope == null ? Lineage.empty() : scope.remove(write);
  }

  /**
   * Adds a lineage to the current one. What it says of the future is removed: it may have been
   * deserialised.
   *
   * @return the lineage with both
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  public static Lineage transfer(Lineage source) {
    Lineage received = LineageText.received(Objects.requireNonNull(source, "source"));
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      Recording.unscoped("transfer", "", Settings.current().onUnscoped());
      return received;
    }
    return scope.merge(received);
  }

  /**
   * Adds the lineage of a text to the current one.
   *
   * @return the lineage with both
   * @throws LineageDecodeException if the text is no lineage
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  public static Lineage transfer(String source) {
    return transfer(Lineage.deserialize(source));
  }

  /**
   * Returns the text of the current lineage, for a header, a message or a column, as it may leave
   * this process: it names the datastores of {@code egress} alone, has at most {@code
   * max_lineage_bytes}, and says what it lost by that.
   */
  public static String serialize() {
    Scope scope = Scope.currentOrNull();
    return LineageText.leaving(scope == null ? Lineage.empty() : scope.leaving());
  }

  /**
   * Returns all that a datastore has committed by now, as one position of its primary: for events
   * that a store emits and that name no position, such as PostgreSQL's {@code NOTIFY}. Who handles
   * one in a scope that starts from it reads at a replica what the event is of. The primary is
   * asked once, on a connection of the library's own.
   *
   * @param datastore whose client in this process reaches its primary
   * @param timeout that the primary may take
   * @return the position; incomplete ({@code unsampled}) where the primary has none, or does not
   *     answer in time: a barrier asks again. Empty where the library is disabled
   * @throws ConfigurationException if no client here reaches the primary, or it has no log
   * @throws IllegalArgumentException if the timeout is not positive
   */
  public static Lineage asOfNow(String datastore, Duration timeout) {
    return AsOfNow.lineage(datastore, timeout);
  }

  /**
   * Returns what will be the lineage of {@link #asOfNow}. No thread waits for it.
   *
   * @throws ConfigurationException as {@link #asOfNow}
   * @throws IllegalArgumentException as {@link #asOfNow}
   */
  public static CompletableFuture<Lineage> asOfNowAsync(String datastore, Duration timeout) {
    return AsOfNow.lineageAsync(datastore, timeout);
  }

  // Promises.

  /**
   * Promises that a branch of this request will write.
   *
   * @param datastore where it will write
   * @param expiresIn after which nobody needs to wait for it; at most {@code max_promise}
   * @return the promise, which is in the current lineage
   * @throws IllegalArgumentException if the time is not positive, or too long
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  public static Promise promise(String datastore, Duration expiresIn) {
    Settings settings = Settings.current();
    if (expiresIn.isZero()
        || expiresIn.isNegative()
        || expiresIn.compareTo(settings.maxPromise()) > 0) {
      throw new IllegalArgumentException(
          "a promise lives for a positive time of at most " + settings.maxPromise());
    }
    byte[] id = new byte[PROMISE_BYTES];
    RANDOM.nextBytes(id);
    Promise promise =
        new Promise(
            datastore, HexFormat.of().formatHex(id), Time.now().plus(expiresIn).getEpochSecond());
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      Recording.unscoped("promise", datastore, settings.onUnscoped());
    } else {
      scope.merge(Lineage.empty().append(promise));
      Observer observer = Observers.dryRun();
      if (observer != null) {
        observer.wrote(scope, promise);
      }
    }
    return promise;
  }

  /**
   * Opens a block that is the branch which fulfils a promise: its scope has everything of the
   * current one but the promise, for which it would wait in vain. What it gathers enters the
   * current scope at its end. The block records nothing: the branch fulfils the promise in the
   * transaction of its data.
   */
  public static ScopeBlock fulfilling(Promise promise) {
    Objects.requireNonNull(promise, "promise");
    Context context = Context.current();
    Scope outer = Scope.fromContextOrNull(context);
    return outer == null
        ? ScopeBlock.enter(
            Scope.startingFrom(Lineage.empty()).fulfilling(promise), context, Scope::end)
        : ScopeBlock.enter(outer.fulfilling(promise), context, branch -> branch.join(outer));
  }

  /**
   * Opens a block that is the branch which fulfils the promise of a token.
   *
   * @throws LineageDecodeException if the text is no token
   */
  public static ScopeBlock fulfilling(String token) {
    return fulfilling(Promise.parse(token));
  }

  // Branches.

  /**
   * Returns a task that runs in the current context, in whatever thread, as a branch of its
   * request: what the request sends until the task has ended says that it runs.
   */
  public static Runnable branch(Runnable task) {
    return Branches.branch(task);
  }

  /** Returns a task that returns a value, as {@link #branch(Runnable)} does. */
  public static <T> Callable<T> branch(Callable<T> task) {
    return Branches.branch(task);
  }

  /**
   * Returns a task that returns a value, as {@link #branch(Runnable)} does: for {@code
   * CompletableFuture.supplyAsync}.
   */
  public static <T> Supplier<T> branchSupplier(Supplier<T> task) {
    return Branches.branchSupplier(task);
  }

  /**
   * Returns a task that an executor is given, as {@link #branching} runs it: for decorators of
   * tasks.
   */
  public static Runnable decorate(Runnable task) {
    return Branches.decorate(task);
  }

  /**
   * Returns an executor whose tasks run in the context that they were given in, as branches of its
   * request.
   *
   * <p>Futures that complete themselves as they run, such as those of {@code
   * CompletableFuture.supplyAsync}, run in that context and are not counted as branches: whoever
   * waits for one would learn of its end before it is over. {@link #branchSupplier} counts them.
   */
  public static ExecutorService branching(ExecutorService executor) {
    return Branches.branching(executor);
  }
}
