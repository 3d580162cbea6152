package io.antipode.together;

import io.antipode.request.Recording;
import io.antipode.request.Scope;
import java.util.Collections;
import java.util.Objects;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A cache of this process whose values keep what they depend on. It is over the application's own
 * map, such as that of a cache of Caffeine, whose bounds and expiry hold:
 *
 * <pre>{@code
 * Cache<String, Kept<Item>> cache = Caffeine.newBuilder().maximumSize(10_000).build();
 * TogetherCache<String, Item> items = TogetherCache.of(cache.asMap(), database::item);
 * Item item = items.get("sku-7");
 * }</pre>
 *
 * <p>A value that is not there is loaded once for all who ask for it meanwhile, as by {@link
 * Together}. Each request that gets a value depends on what was added as it was loaded, also later,
 * and on nothing of who had it loaded. The cache does not know of writes: remove a key that you
 * write, as without this library. Thread-safe.
 *
 * @param <K> the keys
 * @param <V> the values
 */
public final class TogetherCache<K, V> {
  private final ConcurrentMap<K, Kept<V>> kept;
  private final Together<K, V> loads;

  private TogetherCache(
      ConcurrentMap<K, Kept<V>> kept, Function<? super K, ? extends @Nullable V> load) {
    this.kept = Objects.requireNonNull(kept, "kept");
    Objects.requireNonNull(load, "load");
    this.loads =
        Together.<K, V>of(keys -> Collections.nCopies(keys.size(), load(keys.get(0), load)))
            .keyed(key -> key);
  }

  /**
   * Returns a cache.
   *
   * @param kept where the values are; nobody else adds to it
   * @param load a value by its key; null where there is none, which is not kept. It must not ask
   *     the same cache
   */
  public static <K, V> TogetherCache<K, V> of(
      ConcurrentMap<K, Kept<V>> kept, Function<? super K, ? extends @Nullable V> load) {
    return new TogetherCache<>(kept, load);
  }

  /** Returns the value of a key, which is loaded where it is not there. */
  public @Nullable V get(K key) {
    Kept<V> found = kept.get(key);
    if (found == null) {
      return loads.call(key);
    }
    Recording.recordRead(found.lineage());
    return found.value();
  }

  /** Adds a value, which depends on what the current request depends on. */
  public void put(K key, V value) {
    kept.put(key, new Kept<>(Objects.requireNonNull(value, "value"), Scope.ofKeptValue()));
  }

  /** Has a key loaded again. */
  public void remove(K key) {
    kept.remove(key);
  }

  private @Nullable V load(K key, Function<? super K, ? extends @Nullable V> load) {
    // Within the map: who removes the key meanwhile removes what is being loaded.
    Kept<V> made = kept.compute(key, (same, before) -> Keeping.kept(load.apply(same)));
    return made == null ? null : made.value();
  }
}
