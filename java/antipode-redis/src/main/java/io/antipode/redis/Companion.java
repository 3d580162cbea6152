package io.antipode.redis;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.LineageText;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The companion key: a value's stored lineage, and how to know that it is still its own. A plain
 * client that overwrites or deletes the value leaves a companion that no longer fits.
 */
final class Companion {
  /** The records of promises. */
  static final String FULFILLED = "fulfilled";

  static final String ABANDONED = "abandoned";

  private static final String DELETED = "-";
  private static final int DIGITS = 16;

  /** How a value and its companion go together. */
  enum Match {
    OWN,
    COMPANION_ABSENT,
    FOREIGN,
    UNREADABLE;

    /** Returns the name under which it is counted. */
    String metric() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** What a reply shows of a value. */
  enum Shown {
    /** The whole string, or that there is none. */
    WHOLE,
    /** A part of it. */
    PART,
    /** That nothing of what was asked for is there. */
    NOTHING
  }

  /** A stored lineage, and whether it is the value's own. */
  record Stored(Lineage lineage, Match match) {}

  private Companion() {}

  /** Returns the companion of a string; null for a deletion. */
  static String pack(byte @Nullable [] value, String lineage) {
    return (value == null ? DELETED : digest(value)) + "|" + lineage;
  }

  private static String digest(byte[] value) {
    try {
      byte[] sum = MessageDigest.getInstance("SHA-1").digest(value);
      return HexFormat.of().formatHex(sum).substring(0, DIGITS);
    } catch (NoSuchAlgorithmException impossible) { // Every Java has it.
      throw new IllegalStateException(impossible);
    }
  }

  /**
   * Returns the lineage that is stored for a value. Foreign and absent companions have none:
   * nothing is known about who wrote the value.
   *
   * @param value the whole string; null where it is not there, or not shown as a whole
   */
  static Stored unpack(
      byte @Nullable [] value, Shown shown, byte @Nullable [] companion, String datastore) {
    if (companion == null) {
      boolean isNothing = shown == Shown.NOTHING || (shown == Shown.WHOLE && value == null);
      return new Stored(Lineage.empty(), isNothing ? Match.OWN : Match.COMPANION_ABSENT);
    }
    String text = new String(companion, StandardCharsets.ISO_8859_1);
    int bar = text.indexOf('|');
    if (bar >= 0) {
      if (!fits(value, shown, text.substring(0, bar))) {
        return new Stored(Lineage.empty(), Match.FOREIGN);
      }
      try {
        Lineage found = LineageText.received(text.substring(bar + 1));
        return new Stored(found, Match.OWN);
      } catch (LineageDecodeException error) {
        // Said below, as for a companion that is none.
      }
    }
    return new Stored(
        Lineage.empty().marked(new Incomplete(datastore, "unreadable")), Match.UNREADABLE);
  }

  private static boolean fits(byte @Nullable [] value, Shown shown, String mark) {
    return switch (shown) {
      case NOTHING -> true;
      case PART -> !mark.equals(DELETED);
      case WHOLE -> mark.equals(value == null ? DELETED : digest(value));
    };
  }
}
