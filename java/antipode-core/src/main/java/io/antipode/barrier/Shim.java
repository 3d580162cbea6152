package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Observers;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import io.opentelemetry.context.Context;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * One datastore as one process sees it: where barriers wait, and what can be asked of it. Creating
 * a shim does not register it: {@link Shims#register} does.
 */
public abstract class Shim implements AutoCloseable {
  /** The key of what {@link #following} demands; no log has such a name. */
  public static final String PRIMARY_KEY = "~primary";

  private final String datastore;
  private final ReadsFrom readsFrom;
  private final boolean mergesReads;
  private final Watcher watcher;
  private final Fencer fencer;

  private volatile boolean isLooking = true;

  /**
   * Names the datastore.
   *
   * @param datastore a name that every service spells alike; not empty
   * @param readsFrom which of its servers this process reads from
   */
  protected Shim(String datastore, ReadsFrom readsFrom) {
    this(datastore, readsFrom, Clock.system());
  }

  /** Makes what a builder describes. */
  protected Shim(ShimBuilder<?, ?> builder) {
    this(builder.datastore, builder.readsFrom, builder.mergesReads, Clock.system());
  }

  /** Names the datastore of a shim that paces itself by a clock of tests. */
  protected Shim(String datastore, ReadsFrom readsFrom, Clock clock) {
    this(datastore, readsFrom, true, clock);
  }

  private Shim(String datastore, ReadsFrom readsFrom, boolean mergesReads, Clock clock) {
    if (Objects.requireNonNull(datastore, "datastore").isEmpty()) {
      throw new ConfigurationException(
          "a datastore's name is not empty, and every service spells it alike");
    }
    this.datastore = datastore;
    this.readsFrom = Objects.requireNonNull(readsFrom, "readsFrom");
    this.mergesReads = mergesReads;
    this.watcher = new Watcher(this, clock);
    this.fencer = new Fencer(this, clock);
  }

  /** Returns the name of the datastore. */
  public final String datastore() {
    return datastore;
  }

  /** Returns which of its servers this process reads from. */
  public final ReadsFrom readsFrom() {
    return readsFrom;
  }

  /** Returns whether its writes can be waited on. A message store without receipts cannot. */
  public boolean isWaitable() {
    return true;
  }

  /**
   * Returns whether it can open endpoints. A client behind a pool or a proxy only knows at the read
   * which server answers, and cannot.
   */
  public boolean canPoll() {
    return true;
  }

  /** Returns whether an instrumented client of this process satisfies floors. */
  public boolean holdsReads() {
    return false;
  }

  /** Returns whether reads of its clients wait automatically; null: as is configured. */
  public @Nullable ReadBarriers barriers() {
    return null;
  }

  /** Returns whether {@link #fence} works: it reaches the primary of a store with a log. */
  public boolean canFence() {
    return false;
  }

  /**
   * Returns whether its endpoints, and its client's floors where it has these, ask for promises.
   */
  public boolean pollsForPromises() {
    return false;
  }

  /** Returns whether {@link #abandon} works. */
  public boolean canAbandon() {
    return false;
  }

  /** Returns what distinguishes its server from others of this process; null where nothing does. */
  public @Nullable Object server() {
    return null;
  }

  /**
   * Connects to the server where this process reads.
   *
   * @throws UnreachableException if there is no connection now, and it is worth repeating
   * @throws Exception if trying again cannot help
   */
  public abstract Endpoint openEndpoint(Duration timeout) throws Exception;

  /**
   * Returns the primary's position of now, as covering entries: all earlier writes are before it.
   * Where a primary that was replaced may still answer, {@link #following} is among them. Called
   * only where {@link #canFence}.
   *
   * @throws Exception if the primary does not answer in time, or has no position
   */
  public Set<WriteId> fence(Duration timeout) throws Exception {
    throw new UnreachableException(
        "the primary of " + datastore + " cannot be asked for its position");
  }

  /**
   * Returns the demand that a server follows a primary at the time of the poll, or is that server.
   * A primary's position stands for writes that are missing only as long as it is the primary: one
   * that was replaced may still answer. The demand is in no lineage.
   *
   * @param primary as the store names a primary, such as MySQL's {@code server_uuid}
   */
  protected final WriteId following(String primary) {
    return WriteId.ofOpaque(datastore, PRIMARY_KEY, primary).asCovering();
  }

  /**
   * Returns the first position of a log, as a write of this datastore: a server that shows it has
   * that log. Null where the key names no log of this kind of store, or where the logs of two such
   * stores may have the same name by chance.
   */
  public @Nullable WriteId logStart(String key) {
    return null;
  }

  /**
   * Records at the primary that a promise is abandoned, unless it has a record already. Called only
   * where {@link #canAbandon}.
   *
   * @return whether it is abandoned; false where it was fulfilled before
   * @throws UnreachableException if the primary does not answer
   */
  public boolean abandon(Promise promise, Duration timeout) throws Exception {
    throw new ConfigurationException(
        "no promise can be abandoned on " + datastore + " by this shim");
  }

  /** Returns whether what its reads depend on enters the current scope. */
  protected final boolean mergesReads() {
    return mergesReads;
  }

  /** Lets what a read depends on enter the current scope, unless the shim ignores its reads. */
  protected final void recordRead(Lineage lineage) {
    if (mergesReads) {
      Recording.recordRead(lineage);
    }
  }

  /**
   * Notes, for a dry run, that a read of the current scope showed a write, by its own token. It
   * enters the lineage with what was read, and no barrier is missing for it where it was read.
   * Covering positions need no note.
   */
  protected final void recordShown(WriteId write) {
    Scope scope = Scope.currentOrNull();
    if (scope != null && Observers.dryRun() instanceof ReadObserver observer) {
      observer.showed(scope, this, write);
    }
  }

  /**
   * Counts a write that has no position, and logs each cause once.
   *
   * @param store which kind of store that is
   */
  protected final void countUncovered(String store, String cause) {
    Counts.count("uncovered_write", datastore);
    Counts.logOnce(
        store + "_unsampled",
        datastore,
        cause,
        () -> "a write to " + datastore + " has no position: " + cause);
  }

  /**
   * Returns how long the record of a promise must live from now on: until its expiry, and until its
   * absence says nothing any more.
   */
  protected static Duration recordLife(Promise promise) {
    Settings settings = Settings.current();
    Duration left = Duration.between(Time.now(), Instant.ofEpochSecond(promise.expiresS()));
    Duration lives = left.compareTo(settings.maxPromise()) < 0 ? left : settings.maxPromise();
    Duration kept = settings.horizon();
    if (kept.compareTo(Policies.PROMISE_GRACE) < 0) {
      kept = Policies.PROMISE_GRACE;
    }
    return (lives.isNegative() ? Duration.ZERO : lives).plus(kept).plus(Policies.PROMISE_GRACE);
  }

  /**
   * Returns what a call will come to, made in the current scope.
   *
   * @param executor whose threads make it, and wait in it
   */
  protected static <T> CompletableFuture<T> inScope(Callable<T> call, Executor executor) {
    CompletableFuture<T> made = new CompletableFuture<>();
    executor.execute(
        Context.current()
            .wrap(
                () -> {
                  try {
                    made.complete(call.call());
                  } catch (Throwable error) {
                    made.completeExceptionally(error);
                  }
                }));
    return made;
  }

  /**
   * Waits for the dependencies on this datastore alone.
   *
   * @throws UnmetException as {@link Barriers#barrier}
   */
  public BarrierResult await(Lineage lineage, Duration timeout) {
    return Barriers.barrier(
        BarrierOptions.timeout(timeout).withLineage(lineage).withOnly(datastore));
  }

  /** Returns how the last poll of barriers at its server ended; null before the first. */
  public final @Nullable LastPoll lastPoll() {
    return watcher.lastPoll();
  }

  /** Unregisters, and releases what the library holds for it; may be called again. */
  @Override
  public void close() {
    Shims.unregister(this);
  }

  Clock clock() {
    return watcher.clock();
  }

  Watcher watcher() {
    return watcher;
  }

  Fencer fencer() {
    return fencer;
  }

  /** Returns whether barriers wait here: it can poll, and no other client of its server does. */
  boolean isLooking() {
    return isLooking && canPoll();
  }

  void setLooking(boolean looking) {
    isLooking = looking;
  }
}
