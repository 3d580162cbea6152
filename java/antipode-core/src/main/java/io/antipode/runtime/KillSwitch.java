package io.antipode.runtime;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The kill switch: {@code ANTIPODE_DISABLED=true} in the environment leaves a process as it would
 * be without the library. It is read once.
 */
public final class KillSwitch {
  private static final String VARIABLE = "ANTIPODE_DISABLED";
  private static final boolean DISABLED = isSet(System.getenv(VARIABLE));

  private KillSwitch() {}

  /** Returns whether this process runs without the library. */
  public static boolean isDisabled() {
    return DISABLED;
  }

  /** Returns whether a value disables the library; only {@code true} does, in any case. */
  static boolean isSet(@Nullable String value) {
    String word = value == null ? "" : value.strip().toLowerCase(Locale.ROOT);
    if (!word.isEmpty() && !word.equals("true") && !word.equals("false")) {
      Counts.LOG.warning(
          VARIABLE + "=" + value + " is neither true nor false: the library is not disabled");
    }
    return word.equals("true");
  }
}
