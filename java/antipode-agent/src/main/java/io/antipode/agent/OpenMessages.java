package io.antipode.agent;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim of a broker: messages, and the last one of each key. */
abstract class OpenMessages extends OpenBytes {
  private final Map<String, Found> last = new HashMap<>();

  /** Receives a message, which it keeps; returns whether there was one. */
  abstract boolean receive() throws Exception;

  /** Keeps a message until there is a later one of its key. */
  final void keep(String key, byte[] value, Lineage lineage) {
    last.put(key, found(value, lineage));
  }

  @Override
  final Lineage remove(String key, Lineage lineage) {
    throw AgentException.unsupported("the deletion of a published message");
  }

  @Override
  public final synchronized Found read(String key) throws Exception {
    boolean isMore = true;
    while (isMore) {
      isMore = receive();
    }
    Found found = last.getOrDefault(key, found(null, Lineage.empty()));
    @Nullable Lineage lineage = found.lineage();
    if (lineage != null && !lineage.isEmpty()) {
      Lineage ignored = Antipode.transfer(lineage);
    }
    return found;
  }

  @Override
  public final CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous consumer of messages");
  }
}
