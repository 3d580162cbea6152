package io.antipode.telemetry;

import java.util.List;

/** The upper bounds of histograms. */
public final class Buckets {
  /** Of durations, in seconds. */
  public static final List<Double> SECONDS =
      List.of(
          0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
          30.0);

  /** Of the lengths of lineages. */
  public static final List<Long> BYTES = List.of(32L, 64L, 128L, 256L, 512L, 1024L, 2048L, 4096L);

  /** Of the numbers of their entries. */
  public static final List<Long> ENTRIES = List.of(0L, 1L, 2L, 4L, 8L, 16L, 32L, 64L, 128L);

  private Buckets() {}
}
