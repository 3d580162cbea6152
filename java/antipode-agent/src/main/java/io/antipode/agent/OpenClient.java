package io.antipode.agent;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.opentelemetry.context.Context;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** An instrumented client: plain commands, which take no lineage and return none. */
abstract class OpenClient implements OpenShim {
  abstract void put(String key, String value) throws Exception;

  abstract void remove(String key) throws Exception;

  abstract @Nullable String get(String key) throws Exception;

  @Override
  public final @Nullable Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils)
      throws Exception {
    put(key, value);
    return null;
  }

  @Override
  public final @Nullable Lineage delete(String key, @Nullable Lineage lineage) throws Exception {
    remove(key);
    return null;
  }

  @Override
  public final Found read(String key) throws Exception {
    return new Found(get(key), null);
  }

  /** Of a client that has no asynchronous API another thread reads. */
  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return read(key);
          } catch (Exception error) {
            throw new CompletionException(error);
          }
        },
        Context.taskWrapping(OpenBytes.READING));
  }

  @Override
  public final void rolledBack(String key, String value, Promise fulfils) {
    throw AgentException.unsupported("rolled_back");
  }
}
