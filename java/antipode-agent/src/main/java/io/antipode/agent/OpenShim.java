package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim, or a client, by which the agent writes and reads texts. Clients return no lineage. */
interface OpenShim extends AutoCloseable {
  /** What a read found. */
  record Found(@Nullable String value, @Nullable Lineage lineage) {}

  /** Returns whether what is to be opened reads from a replica. */
  static boolean isReplica(JsonNode given) {
    return given.path("reads_from").asText().equals("replica");
  }

  /** Returns a builder, with what is given of how its shim reads. */
  static <B extends ShimBuilder<B, S>, S extends Shim> B reading(B builder, JsonNode given) {
    if (isReplica(given)) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    return builder;
  }

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
