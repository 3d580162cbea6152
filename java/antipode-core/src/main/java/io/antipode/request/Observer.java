package io.antipode.request;

import io.antipode.Settings;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Lineage;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What notifies a dry run of requests, by the thread that does it. For the library's own modules;
 * no part of its interface. Nothing here throws or waits.
 */
public interface Observer extends AutoCloseable {
  /** Makes what observes a process; found by {@code ServiceLoader} once a dry run begins. */
  interface Factory {
    /** Returns what observes from now on. */
    Observer create(Settings settings);
  }

  /**
   * A barrier or check that ends well, or would have without a dry run.
   *
   * @param scope where it was called; null without one
   * @param site who called
   * @param isAtRead whether it waits at the read
   * @param only the datastores that it is about; null for all
   * @param exclude the datastores that it is not about
   * @param isDry whether it waited for nothing because of the dry run
   * @param guards what need not be waited for again
   * @param isNothing whether there was nothing that it could have waited for
   * @param isEmpty whether its lineage was empty
   */
  record BarrierCall(
      @Nullable Scope scope,
      StackTraceElement site,
      boolean isAtRead,
      @Nullable Set<String> only,
      Set<String> exclude,
      boolean isDry,
      List<Dependency> guards,
      boolean isNothing,
      boolean isEmpty) {}

  /** A request begins: here, or by what came in. */
  void opened(Scope scope, boolean isIncoming);

  /** The store acknowledged a write, or a branch promised it; it entered the scope. */
  void wrote(Scope scope, Dependency write);

  /**
   * A read or barrier cannot see what its request wrote in a transaction that is open.
   *
   * @param what {@code read} or {@code barrier}
   * @param wrote where the transaction wrote first
   */
  void beforeCommit(Scope scope, String what, String datastore, StackTraceElement wrote);

  /** A barrier is about to succeed. */
  void barrier(BarrierCall call);

  /** Something found no scope. */
  void unscoped(String what, String datastore);

  /** A scope begins with a message that says nothing of this library's in its headers. */
  void unlabelled(Scope scope, String datastore);

  /** Returns a lineage without the notes of a dry run in it, which the scope keeps apart. */
  Lineage absorb(Scope scope, Lineage lineage);

  /** The lineage of a scope is about to leave this process. */
  void leaves(Scope scope);

  /** It is stored without what the scope wrote in datastores whose transactions are open. */
  void unsent(Scope scope, Set<String> datastores);

  /** Returns the notes that travel with the lineage of a scope. */
  Collection<String> notes(Scope scope);

  /** Waits until what is found out about reads is found, but no longer than so long. */
  void settle(Duration timeout) throws InterruptedException;

  /** The dry run is over. */
  @Override
  void close();
}
