package io.antipode.barrier;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Something that works and pauses in turn until it has nothing left to do. */
public interface Stepper {
  /** Returns the name of the thread that runs it. */
  String name();

  /** Returns what ends its pauses. */
  Wake wake();

  /** Works once; returns how long to pause until the next step, or null when done. */
  @Nullable Duration step();

  /** Pauses, or until there is a reason to work. */
  void pause(Duration timeout);
}
