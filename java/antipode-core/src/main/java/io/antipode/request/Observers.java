package io.antipode.request;

import io.antipode.ConfigurationException;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.runtime.KillSwitch;
import java.nio.file.Path;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** Who observes this process now: a dry run, or nobody. For the library's own modules. */
public final class Observers {
  private static final Object LOCK = new Object();

  private static volatile @Nullable Observer dryRun;
  private static volatile boolean isFollowing;
  private static @Nullable Chosen begun;

  /** The settings by which one dry run differs from another. */
  private record Chosen(@Nullable Path directory, @Nullable String region) {}

  private Observers() {}

  /** Returns the dry run of this process; null where there is none. */
  public static @Nullable Observer dryRun() {
    if (!isFollowing) {
      begin();
    }
    return dryRun;
  }

  private static void begin() {
    try {
      Settings read = Settings.current();
      isFollowing = read != null;
    } catch (ConfigurationException error) {
      isFollowing = false; // Whoever asks for a setting gets it.
    }
  }

  /** Begins and ends dry runs, as is configured now. */
  public static void follow() {
    synchronized (LOCK) {
      Settings settings = Settings.current();
      Chosen chosen =
          settings.mode() == Mode.DRY_RUN && !KillSwitch.isDisabled()
              ? new Chosen(settings.dryRunDir(), settings.region())
              : null;
      if (chosen == null ? begun == null : chosen.equals(begun)) {
        return;
      }
      Observer ended = dryRun;
      dryRun = chosen == null ? null : create(settings);
      begun = chosen;
      if (ended != null) {
        ended.close();
      }
    }
  }

  private static Observer create(Settings settings) {
    return ServiceLoader.load(Observer.Factory.class, Observer.class.getClassLoader())
        .findFirst()
        .orElseThrow(
            () ->
                new ConfigurationException(
                    "antipode-core's META-INF/services is missing: a jar that holds it must merge"
                        + " service files"))
        .create(settings);
  }
}
