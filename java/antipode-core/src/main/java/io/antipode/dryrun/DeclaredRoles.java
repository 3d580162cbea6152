package io.antipode.dryrun;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Shim;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * Clients that are declared to read from a primary, while their server says that it is a replica.
 * Their reads are no findings: what they read from was not declared. Asked in the background, on a
 * connection of the library's own, once for each client whose read has something to miss.
 * Thread-safe.
 */
final class DeclaredRoles {
  /** How long connecting and asking may take, each. */
  private static final Duration ASK = Duration.ofSeconds(2);

  private final Set<Shim> asked =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private List<Thread> asking = List.of();

  /** Returns whether the server of a client was asked, or is. */
  boolean isKnown(Shim client) {
    return asked.contains(client);
  }

  /** Reports, from another thread, if the server of a client is a replica. */
  void ask(Shim client, Runnable report) {
    if (!asked.add(client)) {
      return;
    }
    Thread thread =
        new Thread(
            () -> {
              if (isReplica(client)) {
                report.run();
              }
            },
            "antipode-dry-run-role");
    thread.setDaemon(true);
    synchronized (this) {
      List<Thread> running = new ArrayList<>(asking);
      running.removeIf(each -> !each.isAlive());
      running.add(thread);
      asking = List.copyOf(running);
      thread.start();
    }
  }

  private static boolean isReplica(Shim client) {
    try (Endpoint endpoint = client.openEndpoint(ASK)) {
      return endpoint.isReplica(ASK);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    } catch (Exception error) { // Whatever a client library throws, nothing is known then.
      Counts.LOG.fine(() -> client.datastore() + " does not say what it is: " + error);
      return false;
    }
  }

  /** Waits until all that were asked have answered, but no longer than so long. */
  void settle(Duration timeout) throws InterruptedException {
    List<Thread> waited;
    synchronized (this) {
      waited = asking;
    }
    long until = System.nanoTime() + timeout.toNanos();
    for (Thread each : waited) {
      each.join(Math.max((until - System.nanoTime()) / 1_000_000, 1));
    }
  }
}
