package io.antipode.dryrun;

import org.jspecify.annotations.Nullable;

/** The test that runs in this process, which records name. For test frameworks. */
public final class RunningTest {
  private static volatile @Nullable String name;

  private RunningTest() {}

  /** Says which test runs from now on; null for none. */
  public static void set(@Nullable String test) {
    name = test;
  }

  static @Nullable String get() {
    return name;
  }
}
