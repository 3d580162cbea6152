package io.antipode;

/** Where reads wait for what their request depends on. */
public enum ReadBarriers {
  /** Where a barrier was called. */
  EXPLICIT,
  /** Everywhere: each read of an instrumented client waits automatically. */
  AUTO
}
