package io.antipode.barrier;

import io.antipode.AntipodeException;
import io.opentelemetry.context.Context;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * What a read is counted for once it is answered: it may be stale.
 *
 * <p>A client that knows when its reads are answered makes one for each, in the application's
 * thread, and says so with {@link #answered}. A read that throws instead was served to nobody, and
 * is not counted. Thread-safe: replies may come in another thread.
 */
public final class StaleRead {
  private record Served(String datastore, AntipodeException error) {}

  private final Context context = Context.current();
  private final AtomicReference<@Nullable Served> served = new AtomicReference<>();

  /** Notes that a read may go although an error says that it is stale. */
  void serve(String datastore, AntipodeException error) {
    served.compareAndSet(null, new Served(datastore, error));
  }

  /** Returns whether there is anything to count. */
  public boolean isServed() {
    return served.get() != null;
  }

  /** Counts it: the reply has begun, and is no error. Idempotent. */
  public void answered() {
    Served found = served.getAndSet(null);
    if (found != null) {
      context.wrap(() -> Floor.tellOfStale(found.datastore, found.error)).run();
    }
  }

  /** Forgets it: the read throws. */
  public void failed() {
    served.set(null);
  }
}
