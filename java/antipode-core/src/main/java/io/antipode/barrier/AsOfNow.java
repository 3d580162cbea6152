package io.antipode.barrier;

import io.antipode.ConfigurationException;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A primary's position of now, for an event of its store that names none. */
public final class AsOfNow {
  /** By which a client may be late before it is left alone. */
  private static final Duration GRACE = Duration.ofMillis(250);

  private AsOfNow() {}

  /**
   * Returns the position as a lineage.
   *
   * @see io.antipode.Antipode#asOfNow
   */
  public static Lineage lineage(String datastore, Duration timeout) {
    return KillSwitch.isDisabled()
        ? Lineage.empty()
        : lineage(datastore, positions(datastore, timeout));
  }

  /**
   * Returns what will be the position as a lineage. No thread waits for it.
   *
   * @see io.antipode.Antipode#asOfNowAsync
   */
  public static CompletableFuture<Lineage> lineageAsync(String datastore, Duration timeout) {
    if (KillSwitch.isDisabled()) {
      return CompletableFuture.completedFuture(Lineage.empty());
    }
    Fences fences = asked(datastore, timeout);
    return fences
        .all()
        .orTimeout(within(timeout).toNanos(), TimeUnit.NANOSECONDS)
        .handle((all, error) -> lineage(datastore, answered(datastore, fences)));
  }

  private static Lineage lineage(String datastore, Set<WriteId> found) {
    return found.isEmpty()
        ? Lineage.empty().marked(new Incomplete(datastore, "unsampled"))
        : Lineage.of(found.toArray(new WriteId[0]));
  }

  /**
   * Returns the positions of the primary, asked once; none where it does not answer in time, or any
   * of several does not: it may be the one. For shims, of what an event does not name.
   *
   * @throws ConfigurationException if no client here reaches it, or the store has no log
   * @throws IllegalArgumentException if the timeout is not positive
   */
  public static Set<WriteId> positions(String datastore, Duration timeout) {
    Fences fences = asked(datastore, timeout);
    try {
      fences.all().get(within(timeout).toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt(); // Nothing is known then.
    } catch (ExecutionException | TimeoutException error) {
      // What did not answer is logged as it is taken.
    }
    return answered(datastore, fences);
  }

  /** Begins to ask. */
  private static Fences asked(String datastore, Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a timeout is positive, not " + timeout);
    }
    if (Shims.primaries(datastore).isEmpty()) {
      throw new ConfigurationException(
          "no client in this process can ask the primary of "
              + datastore
              + " for its position: instrument one that reaches it, or have the event itself name"
              + " its position; stores without a log have no position at all");
    }
    return new Fences(List.of(datastore), most(timeout));
  }

  private static Duration most(Duration timeout) {
    Duration most = Settings.current().maxTimeout();
    return timeout.compareTo(most) < 0 ? timeout : most;
  }

  /** Returns for how long it is waited. */
  private static Duration within(Duration timeout) {
    return most(timeout).plus(GRACE);
  }

  /** Returns what was answered by now, without the demand to follow a primary. */
  private static Set<WriteId> answered(String datastore, Fences fences) {
    Set<WriteId> found = new HashSet<>();
    fences.end((name, writes) -> found.addAll(writes));
    found.removeIf(write -> write.key().equals(Shim.PRIMARY_KEY));
    Counts.count(found.isEmpty() ? "fence_failed" : "fences", datastore);
    return found;
  }
}
