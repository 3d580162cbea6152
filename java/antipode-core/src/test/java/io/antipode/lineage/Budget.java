package io.antipode.lineage;

import java.time.Duration;

/** How long a test that tries things at random goes on, and where it begins. */
public final class Budget {
  private static final double SECONDS =
      Double.parseDouble(System.getProperty("antipode.fuzz.seconds", "0.7"));

  /** Printed with what is found, and given back with {@code -Dantipode.fuzz.seed}. */
  public static final long SEED = Long.getLong("antipode.fuzz.seed", System.nanoTime());

  private final long untilNs =
      System.nanoTime() + Duration.ofMillis((long) (SECONDS * 1e3)).toNanos();

  /** Whether there is time for one more; each test has the first. */
  public boolean isLeft() {
    return System.nanoTime() < untilNs;
  }
}
