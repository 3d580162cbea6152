package io.antipode.together;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.benmanes.caffeine.cache.CacheLoader;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.antipode.Antipode;
import io.antipode.Policy;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Caches of Caffeine, with loaders of Caffeine's. */
@Timeout(30)
class TogetherCaffeineTest {
  private static final BarrierOptions BARRIER =
      BarrierOptions.timeout(Duration.ofSeconds(5)).withOnUnknown(Policy.RAISE);

  private final AtomicInteger loads = new AtomicInteger();
  private final AtomicLong nanos = new AtomicLong();
  private final List<Lineage> found = new ArrayList<>();
  private final Queue<Runnable> tasks = new ArrayDeque<>();
  private final List<CompletableFuture<Void>> gates = new ArrayList<>();

  private static Lineage post(int number) {
    return Lineage.of(WriteId.of("posts", "p" + number, 1).writtenAt(498_669));
  }

  /** What the load of a number reads. */
  private static Lineage read(int load) {
    return Lineage.of(WriteId.of("users", "log", load).writtenAt(498_669).asCovering());
  }

  private Integer load(String key) throws IOException {
    found.add(Antipode.current());
    int number = loads.incrementAndGet();
    if (key.equals("bad")) {
      throw new IOException(key);
    }
    Recording.recordRead(read(number));
    return key.equals("none") ? null : number;
  }

  private Caffeine<Object, Object> refreshing() {
    return Caffeine.newBuilder()
        .maximumSize(100)
        .ticker(nanos::get)
        .executor(tasks::add)
        .refreshAfterWrite(Duration.ofMinutes(1));
  }

  /** Lets Caffeine do what is due, in no request. */
  private void background() {
    while (!tasks.isEmpty()) {
      tasks.remove().run();
    }
  }

  private static Lineage after(Lineage start, Runnable request) {
    try (ScopeBlock block = Antipode.scope(start)) {
      request.run();
      return Antipode.current();
    }
  }

  /** Of a load, and of a later hit: what was added, and never what others brought. */
  @Test
  void eachRequestGetsWhatWasAdded() {
    TogetherCache<String, Integer> cache =
        TogetherCaffeine.loading(Caffeine.newBuilder().maximumSize(9), this::load);
    for (int i = 1; i <= 3; i++) {
      assertThat(after(post(i), () -> assertThat(cache.get("a")).isEqualTo(1)))
          .isEqualTo(post(i).merge(read(1)));
    }
    cache.remove("a");
    assertThat(cache.get("a")).isEqualTo(2);
    assertThat(cache.get("none")).isNull();
    assertThatThrownBy(() -> cache.get("bad"))
        .isInstanceOf(CompletionException.class)
        .hasCauseInstanceOf(IOException.class);
  }

  /** In no request: it adds nothing to who made it due, and depends on what the old one does. */
  @Test
  void aRefreshIsOfNoRequest() {
    TogetherCache<String, Integer> cache = TogetherCaffeine.loading(refreshing(), this::load);
    assertThat(cache.get("a")).isEqualTo(1);
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    assertThat(after(post(1), () -> assertThat(cache.get("a")).isEqualTo(1)))
        .as("the old value, which is refreshed meanwhile")
        .isEqualTo(post(1).merge(read(1)));
    background();
    assertThat(found).containsExactly(Lineage.empty(), read(1));
    assertThat(after(post(2), () -> assertThat(cache.get("a")).isEqualTo(2)))
        .isEqualTo(post(2).merge(read(2)));
  }

  /** Else it would stay in the cache, and be lost for each request that gets it. */
  @Test
  void aRefreshLeavesOutWhatTheOldValueDependsOnInVain() {
    TogetherCache<String, Integer> cache =
        TogetherCaffeine.loading(
            refreshing(),
            key -> {
              Barriers.barrier(BARRIER);
              return load(key);
            });
    after(post(1), () -> cache.put("a", 0));
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    assertThat(cache.get("a")).isEqualTo(0);
    background();
    assertThat(after(Lineage.empty(), () -> assertThat(cache.get("a")).isEqualTo(1)))
        .isEqualTo(read(1));
  }

  /** Its reload is asked, with the value as the application has it. */
  @Test
  void aLoadersOwnReloadIsAsked() {
    TogetherCache<String, Integer> cache =
        TogetherCaffeine.loading(
            refreshing(),
            new CacheLoader<String, Integer>() {
              @Override
              public Integer load(String key) {
                return 1;
              }

              @Override
              public Integer reload(String key, Integer old) {
                return old + 10;
              }
            });
    assertThat(cache.get("a")).isEqualTo(1);
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    assertThat(cache.get("a")).isEqualTo(1);
    background();
    assertThat(cache.get("a")).isEqualTo(11);
  }

  // Loaders that return futures.

  private CompletableFuture<Integer> loadAsync(String key, Executor executor) {
    found.add(Antipode.current());
    CompletableFuture<Void> gate = new CompletableFuture<>();
    gates.add(gate);
    return gate.thenApply(
        Context.current()
            .wrapFunction(
                any -> {
                  Recording.recordRead(read(loads.incrementAndGet()));
                  if (key.equals("bad")) {
                    throw new IllegalArgumentException(key);
                  }
                  return key.equals("none") ? null : (Integer) loads.get();
                }));
  }

  private void open() {
    gates.remove(0).complete(null);
  }

  private TogetherAsyncCache<String, Integer> async(Caffeine<Object, Object> builder) {
    return TogetherCaffeine.loadingAsync(builder, this::loadAsync, Runnable::run);
  }

  /** While a value is loaded others wait for the next load; a later hit has what was added. */
  @Test
  void anAsynchronousLoadIsSharedByTheRulesOfTogether() {
    TogetherAsyncCache<String, Integer> cache = async(Caffeine.newBuilder());
    List<ScopeBlock> blocks = new ArrayList<>();
    List<CompletableFuture<Integer>> answers = new ArrayList<>();
    for (int i = 1; i <= 3; i++) {
      try (ScopeBlock block = Antipode.scope(post(i))) {
        blocks.add(block);
        answers.add(cache.get("a"));
      }
    }
    open();
    open();
    assertThat(answers.stream().map(CompletableFuture::join)).containsExactly(1, 2, 2);
    assertThat(found).containsExactly(post(1), post(2).merge(post(3)));
    for (int i = 1; i <= 3; i++) {
      assertThat(blocks.get(i - 1).scope().lineage())
          .isEqualTo(post(i).merge(read(Math.min(i, 2))));
    }
    assertThat(after(post(4), () -> assertThat(cache.get("a")).isCompletedWithValue(2)))
        .isEqualTo(post(4).merge(read(2)));
  }

  /** Neither what fails nor what is not there is kept; a key that is removed meanwhile stays so. */
  @Test
  void whatIsNotThereIsNotKept() {
    ConcurrentHashMap<String, CompletableFuture<Kept<Integer>>> map = new ConcurrentHashMap<>();
    TogetherAsyncCache<String, Integer> cache =
        TogetherAsyncCache.of(map, key -> loadAsync(key, Runnable::run));
    for (String key : List.of("none", "bad", "none", "bad")) {
      CompletableFuture<Integer> answer = cache.get(key);
      open();
      assertThat(answer.isCompletedExceptionally()).isEqualTo(key.equals("bad"));
    }
    CompletableFuture<Integer> removed = cache.get("a");
    cache.remove("a");
    open();
    assertThat(removed).isCompletedWithValue(5);
    assertThat(map).isEmpty();
    after(post(1), () -> cache.put("a", 7));
    assertThat(after(Lineage.empty(), () -> assertThat(cache.get("a")).isCompletedWithValue(7)))
        .isEqualTo(post(1));
  }

  /** As that of a cache whose loader returns values. */
  @Test
  void anAsynchronousRefreshIsOfNoRequest() {
    TogetherAsyncCache<String, Integer> cache = async(refreshing());
    CompletableFuture<Integer> first = cache.get("a");
    open();
    assertThat(first).isCompletedWithValue(1);
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    assertThat(after(post(1), () -> assertThat(cache.get("a")).isCompletedWithValue(1)))
        .isEqualTo(post(1).merge(read(1)));
    assertThat(found).containsExactly(Lineage.empty(), read(1));
    open();
    background();
    assertThat(after(post(2), () -> assertThat(cache.get("a")).isCompletedWithValue(2)))
        .isEqualTo(post(2).merge(read(2)));
  }

  /** What the loader gives to its executor is in the scope of the load. */
  @Test
  void theExecutorCarriesTheScopeOfTheLoad() {
    ExecutorService pool = Executors.newFixedThreadPool(2);
    try {
      TogetherAsyncCache<String, Integer> cache =
          TogetherCaffeine.loadingAsync(
              Caffeine.newBuilder(),
              (String key, Executor executor) ->
                  CompletableFuture.supplyAsync(
                      () -> {
                        found.add(Antipode.current());
                        Recording.recordRead(read(1));
                        return 1;
                      },
                      executor),
              pool);
      assertThat(after(post(1), () -> assertThat(cache.get("a").join()).isEqualTo(1)))
          .isEqualTo(post(1).merge(read(1)));
      assertThat(found).containsExactly(post(1));
    } finally {
      pool.shutdownNow();
    }
  }
}
