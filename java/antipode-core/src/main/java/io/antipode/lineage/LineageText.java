package io.antipode.lineage;

import io.antipode.Settings;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Measures;
import io.antipode.runtime.Time;
import java.util.Collection;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Lineages as text: bounded on the way out, never empty by mistake on the way in. For shims and
 * integrations.
 */
public final class LineageText {
  private static final Shortening.Losses COUNTED =
      new Shortening.Losses() {
        @Override
        public void hidden(Set<String> datastores) {
          datastores.forEach(datastore -> Counts.count("dropped_for_egress", datastore));
        }

        @Override
        public void dropped(Set<String> datastores) {
          datastores.forEach(datastore -> Counts.count("dropped_for_size", datastore));
          Counts.logOnce(
              "dropped_for_size",
              "",
              datastores.toString(),
              () ->
                  "a lineage is too long: dependencies on "
                      + datastores
                      + " were dropped and marked incomplete");
        }
      };

  /** What a bound counts besides the text itself. */
  private static final String MEMBER = "antipode=";

  private LineageText() {}

  /**
   * Returns the lineage of a text that came from elsewhere, as it counts here and now.
   *
   * @throws LineageDecodeException if the text is no lineage
   */
  public static Lineage received(String text) {
    return received(Lineage.deserialize(text));
  }

  /** Returns a lineage that may have come from elsewhere: decoding asks no clock. */
  public static Lineage received(Lineage lineage) {
    return lineage.received(Time.now(), Settings.current().maxPromise());
  }

  /**
   * Returns the lineage of a text; where it is none, the mark (subject, {@code unreadable}), which
   * is counted and logged.
   *
   * @param subject whose writes are missing then: a datastore, a service or {@code baggage}
   */
  public static Lineage readable(String subject, String text) {
    try {
      return received(text);
    } catch (LineageDecodeException error) {
      return unreadable(subject, error.code());
    }
  }

  /** Returns what stands for a lineage that cannot be read, which is counted and logged. */
  public static Lineage unreadable(String subject, String why) {
    Counts.count("unreadable", subject);
    Counts.logOnce(
        "unreadable",
        subject,
        why,
        () -> "a lineage of '" + subject + "' is unreadable (" + why + ")");
    return Lineage.empty().marked(new Incomplete(subject, "unreadable"));
  }

  /** Returns the text of what of a lineage may leave this process, within the settings' bound. */
  public static String leaving(Lineage lineage) {
    return leaving(lineage, Settings.current().maxLineageBytes());
  }

  /**
   * Returns the text of what of a lineage may leave this process, in at most so many bytes.
   *
   * @param maxBytes the bound, in which {@code antipode=} counts
   * @throws LineageTooLargeException if that has no room for a mark
   */
  public static String leaving(Lineage lineage, int maxBytes) {
    return leaving(lineage, maxBytes, Set.of());
  }

  private static String leaving(Lineage lineage, int maxBytes, Collection<String> notes) {
    Set<String> egress = Settings.current().egress();
    Bound bound = Bound.ofBytes(maxBytes);
    return Shortening.text(
        lineage, egress == null ? bound : bound.withEgress(egress), notes, COUNTED);
  }

  /** Returns what of a lineage may be named outside of this process, with a mark for the rest. */
  public static Lineage allowed(Lineage lineage) {
    return Shortening.egress(lineage, Settings.current().egress(), COUNTED);
  }

  /** Returns what to put into a message for a lineage, with the notes of a dry run. */
  public static String message(Lineage lineage) {
    return measured("stored", lineage, Settings.current().maxLineageBytes(), Set.of());
  }

  /**
   * Returns what to send with a request or an answer for a lineage.
   *
   * @param notes what travels for a dry run besides: they name what may be named
   */
  public static String sent(Lineage lineage, Collection<String> notes) {
    return measured("baggage", lineage, Settings.current().maxLineageBytes(), notes);
  }

  private static String measured(
      String carrier, Lineage lineage, int maxBytes, Collection<String> notes) {
    String text = leaving(lineage, maxBytes, notes);
    if (!Measures.isIdle()) {
      int entries = lineage.writes().size();
      Measures.tell(measure -> measure.left(carrier, text.length(), entries));
    }
    return text;
  }

  /** Returns what to store with a value, or to put into a message, for a lineage. */
  public static String stored(Lineage lineage) {
    return message(lineage.withoutNotes());
  }

  /**
   * Returns the same, for a store that has less room.
   *
   * @param room bytes that the text may have at most
   * @throws LineageTooLargeException if that has no room for a mark
   */
  public static String stored(Lineage lineage, int room) {
    int most = Math.min(Settings.current().maxLineageBytes(), room + MEMBER.length());
    return measured("stored", lineage.withoutNotes(), most, Set.of());
  }

  /**
   * Returns the lineage that was stored with a value of a datastore: the empty one where nothing
   * was stored, and the mark (datastore, {@code unreadable}) where it is no lineage.
   */
  public static Lineage stored(String datastore, @Nullable String text) {
    return text == null ? Lineage.empty() : readable(datastore, text).withoutNotes();
  }

  /** Returns what a scope keeps of a lineage; what it does not is counted, and marked in it. */
  public static Lineage held(Lineage lineage) {
    return Shortening.holdable(lineage, COUNTED);
  }
}
