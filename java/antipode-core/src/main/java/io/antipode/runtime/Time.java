package io.antipode.runtime;

import java.time.Instant;
import java.time.InstantSource;

/** The wall clock by which writes get their hours, and promises their expiry. */
public final class Time {
  private static volatile InstantSource source = InstantSource.system();

  private Time() {}

  /** Returns the present moment. */
  public static Instant now() {
    return source.instant();
  }

  /** Returns the present Unix hour. */
  public static long hour() {
    return Math.floorDiv(now().getEpochSecond(), 3_600L);
  }

  /**
   * Replaces the clock of this process, and returns the one that it had. For tests in virtual time.
   */
  public static InstantSource exchange(InstantSource other) {
    InstantSource held = source;
    source = other;
    return held;
  }
}
