package io.antipode.spring;

import io.antipode.Mode;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;

/** What becomes of reads that automatic barriers hold back in vain. */
final class StaleReads {
  private StaleReads() {}

  /** Returns whether they are made at the primary. */
  static boolean goToPrimary() {
    Settings settings = Settings.current();
    return settings.barriers() == ReadBarriers.AUTO
        && settings.onStale() == OnStale.PRIMARY
        && settings.mode() == Mode.ENFORCE;
  }
}
