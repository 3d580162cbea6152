package io.antipode.session;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** What a session cookie says, before it is signed. */
final class Content {
  private static final Pattern SECOND = Pattern.compile("0|[1-9a-z][0-9a-z]{0,7}");
  private static final int RADIX = 36;
  private static final String BETWEEN = "!";
  private static final int MEMBER_BYTES = "antipode=".length();
  private static final long HOUR_MS = 3_600_000;

  private Content() {}

  /**
   * Returns the parts of a content, as received: nobody wrote in the future; null for no content.
   */
  static @Nullable List<Part> parts(String content, long now) {
    List<Part> parts = new ArrayList<>();
    for (String text : content.split(BETWEEN, -1)) {
      int colon = text.indexOf(':');
      String second = colon < 0 ? text : text.substring(0, colon);
      if (!SECOND.matcher(second).matches()) {
        return null;
      }
      try {
        Lineage lineage = LineageText.received(colon < 0 ? "" : text.substring(colon + 1));
        parts.add(new Part(Math.min(Long.parseLong(second, RADIX), now), lineage));
      } catch (LineageDecodeException malformed) {
        return null;
      }
    }
    return parts;
  }

  /** Returns those that are not too old. */
  static List<Part> living(List<Part> parts, long now, Duration maxAge) {
    return parts.stream()
        .filter(part -> Duration.ofSeconds(now - part.second()).compareTo(maxAge) <= 0)
        .toList();
  }

  /** Returns what was added without what is everywhere by its hour, open branches, and notes. */
  static Lineage worthCarrying(Lineage added, long now, Duration maxAge) {
    long oldest = now * 1_000 - maxAge.toMillis();
    Lineage young = added;
    for (WriteId write : added.writes()) {
      if (write.writtenHour() > 0 && (write.writtenHour() + 1) * HOUR_MS < oldest) {
        young = young.remove(write);
      }
    }
    Lineage branches = Lineage.builder().openBranches(young.openBranches()).build();
    return young.beyond(branches).withoutNotes();
  }

  /**
   * Returns the content of parts in at most so many bytes, with a mark for what is lost. Parts
   * become one before anything is: of two, with the second of the newer.
   */
  static String of(List<Part> parts, int room) {
    List<Part> found = joined(parts);
    String content = text(found);
    while (content.length() > room && found.size() > 1) {
      Part older = found.remove(found.size() - 1);
      Part newer = found.remove(found.size() - 1);
      found.add(new Part(newer.second(), newer.lineage().merge(older.lineage())));
      content = text(found);
    }
    if (content.length() <= room) {
      return content;
    }
    String start = start(found.get(0));
    int left = room - start.length() + MEMBER_BYTES;
    return start + LineageText.leaving(found.get(0).lineage(), left);
  }

  /** Newest first, one for each second, each with what it adds to the newer ones. */
  private static List<Part> joined(List<Part> parts) {
    TreeMap<Long, Lineage> seconds = new TreeMap<>();
    for (Part part : parts) {
      seconds.merge(part.second(), LineageText.allowed(part.lineage()), Lineage::merge);
    }
    List<Part> found = new ArrayList<>();
    Lineage newer = Lineage.empty();
    for (Map.Entry<Long, Lineage> each : seconds.descendingMap().entrySet()) {
      Lineage whole = newer.merge(each.getValue());
      Lineage added = whole.beyond(newer);
      if (!added.isEmpty()) {
        found.add(new Part(each.getKey(), added));
      }
      newer = whole;
    }
    return found;
  }

  private static String text(List<Part> parts) {
    return parts.stream()
        .map(part -> start(part) + part.lineage().serialize())
        .collect(Collectors.joining(BETWEEN));
  }

  private static String start(Part part) {
    return Long.toString(part.second(), RADIX) + ":";
  }
}
