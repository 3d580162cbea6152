package io.antipode.dryrun;

import io.antipode.Settings;
import io.antipode.request.Observer;

/** Begins dry runs, for {@code ServiceLoader}. */
public final class DryRunFactory implements Observer.Factory {
  @Override
  public Observer create(Settings settings) {
    return new DryRun(settings.dryRunDir(), settings.region());
  }
}
