package io.antipode.together;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Policy;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnknownDatastoreException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.dataloader.BatchLoader;
import org.dataloader.DataLoader;
import org.dataloader.DataLoaderOptions;
import org.dataloader.DataLoaderRegistry;
import org.dataloader.Try;
import org.dataloader.instrumentation.DataLoaderInstrumentation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A data loader of java-dataloader that requests share. */
@Timeout(30)
class TogetherDataLoaderTest {
  private static final Lineage READ =
      Lineage.of(WriteId.of("users", "log", 9).writtenAt(498_669).asCovering());
  private static final BarrierOptions BARRIER =
      BarrierOptions.timeout(Duration.ofSeconds(5)).withOnUnknown(Policy.RAISE);

  private final List<List<Integer>> runs = new ArrayList<>();
  private final List<Lineage> found = new ArrayList<>();

  /** A request that asked, and what it asked for. */
  private record Asking(ScopeBlock block, CompletableFuture<Integer> answer) {
    Lineage lineage() {
      return block.scope().lineage();
    }
  }

  private static Lineage post(int number) {
    return Lineage.of(WriteId.of("posts", "p" + number, 1).writtenAt(498_669));
  }

  private CompletableFuture<List<Integer>> tenTimes(List<Integer> keys) {
    runs.add(keys);
    found.add(Antipode.current());
    Recording.recordRead(READ);
    return CompletableFuture.completedFuture(keys.stream().map(each -> each * 10).toList());
  }

  private static Asking asking(DataLoader<Integer, Integer> loader, Lineage start, int key) {
    try (ScopeBlock block = Antipode.scope(start)) {
      return new Asking(block, loader.load(key));
    }
  }

  private static void dispatch(DataLoader<Integer, Integer> loader) {
    var unused = loader.dispatch();
  }

  /** One dispatch of a registry, of whoever's: each gets what was added, no others' causes. */
  @Test
  void whatRequestsAskForIsLoadedOnceForAll() {
    DataLoader<Integer, Integer> loader = TogetherDataLoader.of("numbers", this::tenTimes);
    DataLoaderRegistry registry = new DataLoaderRegistry().register(loader);
    assertThat(registry.getDataLoader("numbers")).isSameAs(loader);
    List<Asking> all = new ArrayList<>();
    for (int i = 1; i <= 3; i++) {
      all.add(asking(loader, post(i), i % 2));
    }
    try (ScopeBlock other = Antipode.scope(post(7))) {
      registry.dispatchAll();
      assertThat(Antipode.current()).as("who dispatches asked for nothing").isEqualTo(post(7));
    }
    assertThat(all.stream().map(each -> each.answer().join())).containsExactly(10, 0, 10);
    assertThat(runs).as("each key once").containsExactly(List.of(1, 0));
    assertThat(found).containsExactly(post(1).merge(post(2), post(3)));
    for (int i = 1; i <= 3; i++) {
      assertThat(all.get(i - 1).lineage()).isEqualTo(post(i).merge(READ));
    }
  }

  /** No value is served to who asks later and depends on more. */
  @Test
  void laterRequestsLoadAgain() {
    DataLoader<Integer, Integer> loader =
        TogetherDataLoader.of(
            "numbers", this::tenTimes, DataLoaderOptions.newOptions().setMaxBatchSize(2).build());
    for (int i = 1; i <= 2; i++) {
      Asking asked = asking(loader, post(i), 5);
      assertThat(loader.dispatchAndJoin()).containsExactly(50);
      assertThat(asked.answer()).isCompletedWithValue(50);
    }
    assertThat(found).containsExactly(post(1), post(2));
    Lineage nothing = Lineage.empty();
    List<Asking> all =
        List.of(asking(loader, nothing, 1), asking(loader, nothing, 2), asking(loader, nothing, 3));
    dispatch(loader);
    assertThat(all).allSatisfy(each -> assertThat(each.answer()).isCompleted());
    assertThat(runs.subList(2, 4)).containsExactly(List.of(1, 2), List.of(3));
  }

  /** A registry with an instrumentation has a copy, which does the same. */
  @Test
  void aCopyThatARegistryInstrumentsLoadsTogether() {
    DataLoaderRegistry registry =
        DataLoaderRegistry.newRegistry()
            .instrumentation(new DataLoaderInstrumentation() {})
            .register("numbers", TogetherDataLoader.of("numbers", this::tenTimes))
            .build();
    DataLoader<Integer, Integer> copy = registry.getDataLoader("numbers");
    Asking one = asking(copy, post(1), 1);
    Asking two = asking(copy, post(2), 1);
    registry.dispatchAll();
    assertThat(one.answer()).isCompletedWithValue(10);
    assertThat(two.lineage()).isEqualTo(post(2).merge(READ));
    assertThat(found).containsExactly(post(1).merge(post(2)));
    BatchLoader<Integer, Integer> same = CompletableFuture::completedFuture;
    DataLoader<Integer, Integer> others = copy.transform(changed -> changed.batchLoader(same));
    CompletableFuture<Integer> three = others.load(3);
    dispatch(others);
    assertThat(three).as("of a function that is not ours").isCompletedWithValue(3);
  }

  /** Who brought what is unknown has an error about that alone; it runs again for the others. */
  @Test
  void whoBroughtWhatIsNotMetFailsAlone() {
    DataLoader<Integer, Integer> loader =
        TogetherDataLoader.of(
            "numbers",
            keys -> {
              Barriers.barrier(BARRIER);
              return tenTimes(keys);
            });
    Asking good = asking(loader, Lineage.empty(), 1);
    Asking bad = asking(loader, post(2), 2);
    dispatch(loader);
    assertThat(good.answer()).isCompletedWithValue(10);
    assertThat(good.lineage()).isEqualTo(READ);
    assertThat(bad.answer())
        .failsWithin(Duration.ZERO)
        .withThrowableThat()
        .havingCause()
        .isInstanceOf(UnknownDatastoreException.class);
    assertThat(bad.lineage()).isEqualTo(post(2));
    assertThat(runs).containsExactly(List.of(1));
  }

  /** Keys of tenants are loaded apart; one that fails fails alone; who is gone is left out. */
  @Test
  void tenantsFailuresAndCancelledCalls() {
    DataLoader<Integer, Integer> loader =
        TogetherDataLoader.<Integer, Integer>of(
                "numbers",
                keys -> {
                  runs.add(keys);
                  @SuppressWarnings({"unchecked", "rawtypes"}) // As loaders of Try have it.
                  List<Integer> values =
                      (List)
                          keys.stream()
                              .map(
                                  each ->
                                      each < 0
                                          ? Try.failed(new IllegalArgumentException("no " + each))
                                          : each)
                              .toList();
                  return CompletableFuture.completedFuture(values);
                })
            .keyed(key -> Math.abs(key) % 2);
    CompletableFuture<Integer> one = loader.load(1);
    CompletableFuture<Integer> two = loader.load(2);
    CompletableFuture<Integer> failed = loader.load(-3);
    CompletableFuture<Integer> gone = loader.load(5);
    assertThat(gone.cancel(false)).isTrue();
    dispatch(loader);
    assertThat(runs).containsExactly(List.of(1, -3), List.of(2));
    assertThat(one).isCompletedWithValue(1);
    assertThat(two).isCompletedWithValue(2);
    assertThat(failed)
        .failsWithin(Duration.ZERO)
        .withThrowableThat()
        .havingCause()
        .withMessage("no -3");
  }

  /** A loader of values that are too few, or none, or that throws, fails whoever asked. */
  @ParameterizedTest
  @ValueSource(strings = {"few", "null", "throws", "fails"})
  void aBrokenLoaderFailsEverybody(String how) {
    DataLoader<Integer, Integer> loader =
        TogetherDataLoader.of(
            "numbers",
            keys ->
                switch (how) {
                  case "few" -> CompletableFuture.completedFuture(List.of(1));
                  case "null" -> CompletableFuture.completedFuture(null);
                  case "fails" -> CompletableFuture.failedFuture(new IllegalStateException(how));
                  default -> throw new IllegalStateException(how);
                });
    CompletableFuture<Integer> one = loader.load(1);
    CompletableFuture<Integer> two = loader.load(2);
    dispatch(loader);
    assertThat(one)
        .failsWithin(Duration.ZERO)
        .withThrowableThat()
        .havingRootCause()
        .isInstanceOf(IllegalStateException.class);
    assertThat(two).isCompletedExceptionally();
  }

  /** Random requests in threads: each gets what its own key is, and what was added. */
  @ParameterizedTest
  @ValueSource(longs = {0, 1})
  void threadsGetWhatTheModelSays(long seed) {
    DataLoader<Integer, Integer> loader =
        TogetherDataLoader.<Integer, Integer>of(
                "numbers",
                keys -> {
                  Recording.recordRead(READ);
                  return CompletableFuture.supplyAsync(
                      () -> keys.stream().map(each -> each * 10).toList());
                })
            .keyed(key -> key % 3);
    Random random = new Random(seed);
    List<CompletableFuture<?>> requests = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      int key = random.nextInt(20);
      int number = i;
      requests.add(
          CompletableFuture.runAsync(
              () -> {
                Asking asked = asking(loader, post(number), key);
                dispatch(loader);
                assertThat(asked.answer().join()).isEqualTo(key * 10);
                assertThat(asked.lineage()).isEqualTo(post(number).merge(READ));
              }));
    }
    assertThat(CompletableFuture.allOf(requests.toArray(CompletableFuture<?>[]::new)))
        .succeedsWithin(Duration.ofSeconds(20));
  }
}
