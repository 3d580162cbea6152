package io.antipode.together;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A cache whose values keep what they depend on. */
@Timeout(30)
class TogetherCacheTest {
  private static final Lineage READ =
      Lineage.of(WriteId.of("users", "log", 9).writtenAt(498_669).asCovering());

  private final ConcurrentHashMap<String, Kept<Integer>> map = new ConcurrentHashMap<>();
  private final AtomicInteger loads = new AtomicInteger();

  private static Lineage post(int number) {
    return Lineage.of(WriteId.of("posts", "p" + number, 1).writtenAt(498_669));
  }

  private Integer load(String key) {
    loads.incrementAndGet();
    if (key.equals("bad")) {
      throw new IllegalArgumentException(key);
    }
    Recording.recordRead(READ);
    return key.equals("none") ? null : key.length();
  }

  /** Of a load, and of a later hit: what was added, and never what others brought. */
  @Test
  void eachRequestGetsWhatWasAdded() {
    TogetherCache<String, Integer> cache = TogetherCache.of(map, this::load);
    for (int i = 1; i <= 3; i++) {
      try (ScopeBlock block = Antipode.scope(post(i))) {
        assertThat(cache.get("four")).isEqualTo(4);
        assertThat(Antipode.current()).isEqualTo(post(i).merge(READ));
      }
    }
    assertThat(loads).hasValue(1);
    cache.remove("four");
    assertThat(cache.get("four")).isEqualTo(4);
    assertThat(loads).hasValue(2);
  }

  /** A value that is put depends on what its request does; one without a lineage is served. */
  @Test
  void valuesThatWereNotLoaded() {
    TogetherCache<String, Integer> cache = TogetherCache.of(map, this::load);
    map.put("old", new Kept<>(7, Lineage.empty()));
    try (ScopeBlock block = Antipode.scope(post(1))) {
      cache.put("mine", 5);
    }
    try (ScopeBlock block = Antipode.scope()) {
      assertThat(cache.get("old")).isEqualTo(7);
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
      assertThat(cache.get("mine")).isEqualTo(5);
      assertThat(Antipode.current()).isEqualTo(post(1));
    }
  }

  /** What fails, or is not there, is loaded again. */
  @Test
  void whatIsNotThereIsNotKept() {
    TogetherCache<String, Integer> cache = TogetherCache.of(map, this::load);
    for (int i = 0; i < 2; i++) {
      assertThat(cache.get("none")).isNull();
      assertThatThrownBy(() -> cache.get("bad")).isInstanceOf(IllegalArgumentException.class);
    }
    assertThat(loads).hasValue(4);
    assertThat(map).isEmpty();
  }

  /** Who asks while a value is loaded gets none that began before, and no others' causes. */
  @Test
  void aStampedeLoadsTwiceAtMost() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    TogetherCache<String, Integer> cache =
        TogetherCache.of(
            map,
            key -> {
              begun.countDown();
              try {
                go.await();
              } catch (InterruptedException error) {
                throw new IllegalStateException(error);
              }
              return load(key);
            });
    ExecutorService pool = Executors.newFixedThreadPool(8);
    try {
      List<Future<Lineage>> after = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        int number = i;
        after.add(
            pool.submit(
                () -> {
                  try (ScopeBlock block = Antipode.scope(post(number))) {
                    assertThat(cache.get("four")).isEqualTo(4);
                    return Antipode.current();
                  }
                }));
      }
      begun.await();
      go.countDown();
      for (int i = 0; i < 8; i++) {
        assertThat(after.get(i).get()).isEqualTo(post(i).merge(READ));
      }
      assertThat(loads.get()).isBetween(1, 2);
    } finally {
      pool.shutdownNow();
    }
  }
}
