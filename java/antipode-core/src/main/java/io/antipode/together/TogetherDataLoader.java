package io.antipode.together;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;
import org.dataloader.BatchLoader;
import org.dataloader.BatchLoaderEnvironment;
import org.dataloader.DataLoader;
import org.dataloader.DataLoaderFactory;
import org.dataloader.DataLoaderOptions;
import org.dataloader.DelegatingDataLoader;
import org.dataloader.Try;
import org.jspecify.annotations.Nullable;

/**
 * A data loader of java-dataloader that requests may share. What one dispatch loads is loaded once
 * for all who asked for it, as by {@link TogetherAsync}: in a scope of its own, which depends on
 * what these depend on. Each then depends on what was added, and on nothing of the others.
 *
 * <pre>{@code
 * DataLoader<Long, User> users =
 *     TogetherDataLoader.of("users", ids -> database.users(ids));
 * registry.register(users);
 * }</pre>
 *
 * <p>It is dispatched as every other. It keeps no values, for these would be served to later
 * requests without what they depend on: keep them in a {@link TogetherCache}. A loader of one
 * request alone needs nothing of this.
 *
 * @param <K> the keys
 * @param <V> the values
 */
public final class TogetherDataLoader<K, V> extends DelegatingDataLoader<K, V> {
  private final Work<K, V> work;

  private TogetherDataLoader(Work<K, V> work, DataLoader<K, V> delegate) {
    super(delegate);
    this.work = work;
  }

  /** Returns a data loader with the options that java-dataloader has by default. */
  public static <K, V> TogetherDataLoader<K, V> of(String name, BatchLoader<K, V> load) {
    return of(name, load, DataLoaderOptions.newDefaultOptions());
  }

  /**
   * Returns a data loader.
   *
   * @param name by which registries know it: one without a name is copied for each of them
   * @param load takes each key that is asked for once, and returns a value for each, in their
   *     order; one that is a {@link Try} or a {@link Throwable} fails who asked for its key alone
   * @param options of which those for caches are without effect
   */
  public static <K, V> TogetherDataLoader<K, V> of(
      String name, BatchLoader<K, V> load, DataLoaderOptions options) {
    Objects.requireNonNull(load, "load");
    return of(name, new Work<>(items -> eachOnce(load, items), any -> ""), options);
  }

  private static <K, V> TogetherDataLoader<K, V> of(
      String name, Work<K, V> work, DataLoaderOptions options) {
    return new TogetherDataLoader<>(
        work,
        DataLoaderFactory.newDataLoader(
            Objects.requireNonNull(name, "name"),
            (keys, environment) -> dispatched(work, environment),
            options.transform(changed -> changed.setCachingEnabled(false))));
  }

  /**
   * Returns the same loader, which loads together what this is equal for, such as keys of one
   * tenant.
   *
   * @param key of a key
   */
  public TogetherDataLoader<K, V> keyed(Function<? super K, ?> key) {
    return of(Objects.requireNonNull(getName()), work.keyed(key), getOptions());
  }

  /** Returns a copy, such as one that a registry instruments; they load apart. */
  @Override
  public DataLoader<K, V> transform(Consumer<DataLoaderFactory.Builder<K, V>> changed) {
    return new TogetherDataLoader<>(work, delegate.transform(changed));
  }

  @Override
  public CompletableFuture<V> load(K key, @Nullable Object keyContext) {
    Asked<K, V> asked = new Asked<>(key);
    var unused =
        delegate
            .load(key, asked)
            .whenComplete(
                (value, error) -> {
                  // Known already, unless it was not loaded by us.
                  boolean unusedHere =
                      error == null
                          ? asked.answer.complete(value)
                          : asked.answer.completeExceptionally(error);
                });
    return asked.answer;
  }

  /** Loads what one dispatch has, those apart that do not share. */
  private static <K, V> CompletionStage<List<V>> dispatched(
      Work<K, V> work, BatchLoaderEnvironment environment) {
    List<Asked<K, V>> all = new ArrayList<>();
    for (Object each : environment.getKeyContextsList()) {
      @SuppressWarnings("unchecked") // By load().
      Asked<K, V> asked = (Asked<K, V>) each;
      all.add(asked);
    }
    Map<Object, List<Asked<K, V>>> groups = new LinkedHashMap<>();
    for (Asked<K, V> each : all) {
      if (!each.isOver()) {
        groups.computeIfAbsent(work.group(each), any -> new ArrayList<>()).add(each);
      }
    }
    groups.values().forEach(calls -> new Run<>(calls).go(work, calls.get(0).context, () -> {}));
    List<CompletableFuture<V>> answers = new ArrayList<>();
    all.forEach(each -> answers.add(each.answer.handle(TogetherDataLoader::found)));
    return CompletableFuture.allOf(answers.toArray(CompletableFuture<?>[]::new))
        .thenApply(over -> values(answers));
  }

  private static <V> List<V> values(List<CompletableFuture<V>> answers) {
    List<V> values = new ArrayList<>();
    answers.forEach(each -> values.add(each.join()));
    return values;
  }

  /** Returns a value, or an error in its place, as java-dataloader takes it. */
  @SuppressWarnings("unchecked")
  private static <V> V found(V value, @Nullable Throwable error) {
    return error == null ? value : (V) error;
  }

  /** Returns what a batch loader has for a key: a value, or an error in its place. */
  @SuppressWarnings("unchecked")
  private static <V> V value(V given) {
    return given instanceof Try<?> made
        ? (V) (made.isSuccess() ? made.get() : made.getThrowable())
        : given;
  }

  /** Loads each key once, for all who asked for it. */
  private static <K, V> CompletionStage<List<V>> eachOnce(BatchLoader<K, V> load, List<K> items) {
    List<K> keys = items.stream().distinct().toList();
    return load.load(keys)
        .thenApply(
            values -> {
              if (values == null || values.size() != keys.size()) {
                throw new IllegalStateException(
                    "the batch loader returned "
                        + (values == null ? "no" : values.size())
                        + " values for "
                        + keys.size()
                        + " keys");
              }
              Map<K, V> found = new HashMap<>();
              for (int i = 0; i < keys.size(); i++) {
                found.put(keys.get(i), value(values.get(i)));
              }
              List<V> each = new ArrayList<>();
              items.forEach(item -> each.add(found.get(item)));
              return each;
            });
  }
}
