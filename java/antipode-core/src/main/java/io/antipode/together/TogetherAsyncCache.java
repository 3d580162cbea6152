package io.antipode.together;

import io.antipode.request.Recording;
import io.antipode.request.Scope;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A cache of this process whose values keep what they depend on, as {@link TogetherCache}, and are
 * loaded by work that returns a future. It is over the application's own map, such as that of an
 * asynchronous cache of Caffeine:
 *
 * <pre>{@code
 * AsyncCache<String, Kept<Item>> cache = Caffeine.newBuilder().maximumSize(10_000).buildAsync();
 * TogetherAsyncCache<String, Item> items =
 *     TogetherAsyncCache.of(cache.asMap(), database::itemAsync);
 * CompletableFuture<Item> item = items.get("sku-7");
 * }</pre>
 *
 * @param <K> the keys
 * @param <V> the values
 */
public final class TogetherAsyncCache<K, V> {
  private final ConcurrentMap<K, CompletableFuture<Kept<V>>> kept;
  private final TogetherAsync<K, V> loads;

  private TogetherAsyncCache(
      ConcurrentMap<K, CompletableFuture<Kept<V>>> kept,
      Function<? super K, ? extends CompletionStage<? extends @Nullable V>> load) {
    this.kept = Objects.requireNonNull(kept, "kept");
    Objects.requireNonNull(load, "load");
    this.loads = TogetherAsync.<K, V>of(keys -> load(keys, load)).keyed(key -> key);
  }

  /**
   * Returns a cache.
   *
   * @param kept where the values are, and what is being loaded; nobody else adds to it
   * @param load a value by its key; null where there is none, which is not kept. It must not ask
   *     the same cache
   */
  public static <K, V> TogetherAsyncCache<K, V> of(
      ConcurrentMap<K, CompletableFuture<Kept<V>>> kept,
      Function<? super K, ? extends CompletionStage<? extends @Nullable V>> load) {
    return new TogetherAsyncCache<>(kept, load);
  }

  /** Returns the value of a key, which is loaded where it is not there. */
  public CompletableFuture<@Nullable V> get(K key) {
    CompletableFuture<Kept<V>> there = kept.get(key);
    if (there == null || !there.isDone() || there.isCompletedExceptionally()) {
      return loads.call(key);
    }
    Kept<V> found = there.join();
    if (found == null) { // It is about to be removed.
      return loads.call(key);
    }
    Recording.recordRead(found.lineage());
    return CompletableFuture.completedFuture(found.value());
  }

  /** Adds a value, which depends on what the current request depends on. */
  public void put(K key, V value) {
    Kept<V> made = new Kept<>(Objects.requireNonNull(value, "value"), Scope.ofKeptValue());
    kept.put(key, CompletableFuture.completedFuture(made));
  }

  /** Has a key loaded again. */
  public void remove(K key) {
    kept.remove(key);
  }

  private CompletionStage<List<V>> load(
      List<K> keys, Function<? super K, ? extends CompletionStage<? extends @Nullable V>> load) {
    K key = keys.get(0);
    CompletableFuture<Kept<V>> made = Keeping.kept(load.apply(key));
    // From now on: who removes the key meanwhile removes what is being loaded.
    kept.put(key, made);
    return made.whenComplete(
            (found, error) -> {
              if (found == null) {
                kept.remove(key, made);
              }
            })
        .thenApply(found -> Collections.nCopies(keys.size(), found == null ? null : found.value()));
  }
}
