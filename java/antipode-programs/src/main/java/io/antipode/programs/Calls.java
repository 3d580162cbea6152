package io.antipode.programs;

import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** An asynchronous client of one store in two regions, and what programs do with it. */
interface Calls extends AutoCloseable {
  /**
   * What a call that succeeds leaves.
   *
   * @param number of an item, which grows from write to write
   * @param isThere whether the item is, then
   */
  record Left(String key, long number, boolean isThere) {
    /** Returns whether this or something later is shown, by the number of what is. */
    boolean isShown(@Nullable Long shown) {
      return shown == null ? !isThere : shown >= number;
    }
  }

  /** A call that was made; some leave nothing. */
  record Made(String name, CompletableFuture<?> future, List<Left> left) {
    Made(String name, CompletableFuture<?> future, Left... left) {
      this(name, future, List.of(left));
    }
  }

  /** Makes a call that writes to these keys, or to some of them; each number is new. */
  Made write(Random random, List<String> keys, long number);

  /** Makes a call that fails, or writes nothing. */
  Made other(Random random, String key);

  /** Reads by the instrumented client of the other region; null where there is nothing. */
  CompletableFuture<@Nullable Long> read(String key);

  /** Returns what the other region has, as a plain client sees it. */
  @Nullable Long shown(String key);

  @Override
  void close();
}
