package io.antipode.barrier;

import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.logging.Level;

/** What one barrier asks of primaries: the positions of each that a client here reaches. */
final class Fences {
  private final Map<String, List<CompletableFuture<Set<WriteId>>>> asked = new HashMap<>();

  /** Begins to ask the primaries of some datastores, all at once. */
  Fences(Collection<String> datastores, Duration timeout) {
    for (String datastore : datastores) {
      asked.put(
          datastore,
          Shims.primaries(datastore).stream().map(shim -> shim.fencer().ask(timeout)).toList());
    }
  }

  boolean isEmpty() {
    return asked.isEmpty();
  }

  /** Returns what is complete once all have answered. */
  CompletableFuture<Void> all() {
    return CompletableFuture.allOf(
        asked.values().stream().flatMap(List::stream).toArray(CompletableFuture<?>[]::new));
  }

  void cancel() {
    asked.values().stream().flatMap(List::stream).forEach(each -> each.cancel(false));
  }

  /** Waits no longer, and reports for each datastore what {@link #position} says. */
  void end(BiConsumer<String, Set<WriteId>> report) {
    cancel();
    asked.forEach((datastore, answers) -> report.accept(datastore, position(datastore, answers)));
  }

  /** Returns the positions of all primaries; nothing where one of them reported none by now. */
  private static Set<WriteId> position(
      String datastore, List<CompletableFuture<Set<WriteId>>> answers) {
    Set<WriteId> all = new HashSet<>();
    for (CompletableFuture<Set<WriteId>> answer : answers) {
      Set<WriteId> writes = position(datastore, answer);
      if (writes.isEmpty()) {
        return Set.of();
      }
      all.addAll(writes);
    }
    return all;
  }

  private static Set<WriteId> position(String datastore, CompletableFuture<Set<WriteId>> answer) {
    try {
      return answer.join();
    } catch (RuntimeException error) { // The barrier then fails as it would without fences.
      Counts.LOG.log(Level.WARNING, error, () -> "no fence from the primary of " + datastore);
      return Set.of();
    }
  }
}
