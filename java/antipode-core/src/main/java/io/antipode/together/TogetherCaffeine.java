package io.antipode.together;

import com.github.benmanes.caffeine.cache.AsyncCacheLoader;
import com.github.benmanes.caffeine.cache.AsyncLoadingCache;
import com.github.benmanes.caffeine.cache.CacheLoader;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.LoadingCache;
import io.opentelemetry.context.Context;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Caches of Caffeine with loaders of Caffeine's, whose values keep what they depend on.
 *
 * <pre>{@code
 * TogetherCache<String, Item> items =
 *     TogetherCaffeine.loading(
 *         Caffeine.newBuilder().maximumSize(10_000).refreshAfterWrite(Duration.ofMinutes(1)),
 *         database::item);
 * }</pre>
 *
 * <p>A value that is refreshed is loaded in a scope of its own, of no request: what it depends on
 * is what that reads. It waits for what the value before depends on, and is no older.
 */
public final class TogetherCaffeine {
  private TogetherCaffeine() {}

  /**
   * Returns a cache that loads in the thread of who asks.
   *
   * @param builder with its bounds, expiry and refresh
   * @param loader of values; null is not kept. A checked error of it is the cause of a {@link
   *     CompletionException}
   */
  public static <K, V> TogetherCache<K, V> loading(
      Caffeine<? super K, ? super Kept<V>> builder,
      CacheLoader<? super K, ? extends @Nullable V> loader) {
    Objects.requireNonNull(loader, "loader");
    LoadingCache<K, Kept<V>> cache = builder.build(new Loads<K, V>(loader));
    return TogetherCache.of(cache.asMap(), key -> loaded(() -> loader.load(key)));
  }

  /**
   * Returns a cache whose loader returns futures.
   *
   * @param builder with its bounds, expiry and refresh
   * @param loader of values; null is not kept
   * @param executor that it is given; what runs there is in the scope of its load
   */
  public static <K, V> TogetherAsyncCache<K, V> loadingAsync(
      Caffeine<? super K, ? super Kept<V>> builder,
      AsyncCacheLoader<? super K, ? extends @Nullable V> loader,
      Executor executor) {
    Objects.requireNonNull(loader, "loader");
    Executor within = Context.taskWrapping(executor);
    AsyncLoadingCache<K, Kept<V>> cache = builder.buildAsync(new AsyncLoads<K, V>(loader, within));
    return TogetherAsyncCache.of(cache.asMap(), key -> loaded(() -> loader.asyncLoad(key, within)));
  }

  /** What loads, and may fail in any way. */
  private interface Loading<R extends @Nullable Object> {
    R load() throws Exception;
  }

  /** Loads, with errors as Caffeine's caches have them. */
  private static <R extends @Nullable Object> R loaded(Loading<R> loading) {
    try {
      return loading.load();
    } catch (RuntimeException error) {
      throw error;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new CompletionException(error);
    } catch (Exception error) {
      throw new CompletionException(error);
    }
  }

  /** Loads for refreshes: who asks for a value that is not there loads it through the cache. */
  private record Loads<K, V>(CacheLoader<? super K, ? extends @Nullable V> loader)
      implements CacheLoader<K, Kept<V>> {
    @Override
    @SuppressWarnings("NullAway") // Its values may be null.
    public @Nullable Kept<V> load(K key) throws Exception {
      return Keeping.kept(loader.load(key));
    }

    @Override
    @SuppressWarnings("NullAway")
    public @Nullable Kept<V> reload(K key, Kept<V> before) {
      @SuppressWarnings("unchecked") // It is what the loader returned.
      CacheLoader<K, V> same = (CacheLoader<K, V>) loader;
      V value = Objects.requireNonNull(before.value());
      return Keeping.again(
              before.lineage(),
              () ->
                  CompletableFuture.completedFuture(
                      Keeping.kept(loaded(() -> same.reload(key, value)))))
          .join();
    }
  }

  /** The same, of a loader that returns futures. */
  private record AsyncLoads<K, V>(
      AsyncCacheLoader<? super K, ? extends @Nullable V> loader, Executor within)
      implements AsyncCacheLoader<K, Kept<V>> {
    @Override
    public CompletableFuture<? extends @Nullable Kept<V>> asyncLoad(K key, Executor executor)
        throws Exception {
      return Keeping.kept(loader.asyncLoad(key, within));
    }

    @Override
    public CompletableFuture<? extends @Nullable Kept<V>> asyncReload(
        K key, Kept<V> before, Executor executor) {
      @SuppressWarnings("unchecked") // It is what the loader returned.
      AsyncCacheLoader<K, V> same = (AsyncCacheLoader<K, V>) loader;
      V value = Objects.requireNonNull(before.value());
      return Keeping.again(
          before.lineage(), () -> Keeping.kept(loaded(() -> same.asyncReload(key, value, within))));
    }
  }
}
