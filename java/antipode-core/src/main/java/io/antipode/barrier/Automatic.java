package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.antipode.Lineage;
import io.antipode.Mode;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Scope;
import io.antipode.Settings;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import org.jspecify.annotations.Nullable;

/** Automatic barriers: each read waits for what its request depends on, where it reads. */
final class Automatic {
  private static final ContextKey<ReadBarriers> BLOCK = ContextKey.named("antipode-barriers");

  private Automatic() {}

  /** Returns a context in which reads wait by themselves, or do not, whatever is configured. */
  static Context storeIn(Context context, ReadBarriers which) {
    return context.with(BLOCK, which);
  }

  /** Returns whether reads of a client wait by themselves, here and now. */
  static boolean applies(Shim client) {
    return Settings.current().mode() == Mode.ENFORCE && isChosen(client);
  }

  /** Returns whether they are to wait by themselves here, whatever the mode. */
  static boolean isChosen(Shim client) {
    ReadBarriers which = Context.current().get(BLOCK);
    if (which == null) {
      which = client.barriers();
    }
    if (which == null) {
      which = Settings.current().barriers();
    }
    return which == ReadBarriers.AUTO;
  }

  /**
   * Returns what the next read by a client must see: what an explicit floor demands, and the rest.
   *
   * @throws UnmetException if it is known without a look that something cannot be seen, and stale
   *     reads are to throw
   */
  static @Nullable Floor floor(Scope scope, Shim client, @Nullable Floor explicit, boolean reads) {
    Lineage lineage = scope.known();
    if (lineage.isEmpty()) {
      return explicit;
    }
    Demand demand = Demand.of(scope, client, lineage, Settings.current());
    if (reads) {
      Call.countUnknownStores(demand.unknown);
    }
    UnmetException error = reads ? demand.hopeless() : null;
    if (error != null) {
      serve(error, client.datastore(), demand.settings());
    }
    if (demand.wanted.isEmpty()
        || (explicit != null && explicit.wanted().containsAll(demand.wanted))) {
      return explicit;
    }
    return new AutomaticFloor(demand, scope.allowance(), client, explicit);
  }

  /**
   * Answers a read all the same, and says so.
   *
   * @throws UnmetException the given one, where that is configured
   */
  static void serve(AntipodeException error, String datastore, Settings settings) {
    if (settings.onStale() == OnStale.RAISE && error instanceof UnmetException) {
      throw error;
    }
    Counts.count("served_stale", datastore);
    Span.current()
        .addEvent(
            "antipode.served_stale",
            Attributes.builder()
                .put("antipode.datastore", datastore)
                .put("antipode.code", error.code())
                .build());
    Counts.logSeldom(
        "served_stale",
        datastore,
        () ->
            "a read of "
                + datastore
                + " was answered although its request depends on more: "
                + error.getMessage());
  }
}
