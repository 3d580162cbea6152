package io.antipode.agent;

import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim, or a client, by which the agent writes and reads texts. Clients return no lineage. */
interface OpenShim extends AutoCloseable {
  /** What a read found. */
  record Found(@Nullable String value, @Nullable Lineage lineage) {}

  Shim shim();

  /** Writes; the current lineage where none is given. */
  @Nullable Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils)
      throws Exception;

  @Nullable Lineage delete(String key, @Nullable Lineage lineage) throws Exception;

  Found read(String key) throws Exception;

  /** Returns what will be found. */
  CompletableFuture<Found> readAsync(String key);

  /** Writes and fulfils in a transaction that is rolled back. */
  void rolledBack(String key, String value, Promise fulfils) throws Exception;

  @Override
  void close();
}
