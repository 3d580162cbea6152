package io.antipode.postgresql;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A timeline in a server's chain.
 *
 * @param start where it begins
 * @param end where the next one leaves it; null for the last
 */
record Span(int timeline, long start, @Nullable Long end) {
  private static final Pattern ENTRY =
      Pattern.compile("\\s*([0-9]+)\\s+([0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8})(?:\\s.*)?");

  /**
   * Returns the chain of a timeline from the text of its history; null where that does not show it.
   * The first timeline has none.
   */
  static @Nullable List<Span> chain(String history, int timeline) {
    if (timeline == 1) {
      return List.of(new Span(1, 0, null));
    }
    List<Span> spans = new ArrayList<>();
    long start = 0;
    int last = 0;
    for (String line : history.split("\\R", -1)) {
      if (line.isBlank() || line.stripLeading().startsWith("#")) {
        continue;
      }
      Span span = entry(line, start);
      if (span == null || span.end == null) {
        return null;
      }
      boolean isLater = span.timeline > last && Lsn.isAtLeast(span.end, start);
      if (!isLater || span.timeline >= timeline) {
        return null;
      }
      spans.add(span);
      start = span.end;
      last = span.timeline;
    }
    if (spans.isEmpty()) {
      return null;
    }
    spans.add(new Span(timeline, start, null));
    return List.copyOf(spans);
  }

  private static @Nullable Span entry(String line, long start) {
    Matcher found = ENTRY.matcher(line);
    try {
      return found.matches()
          ? new Span(Integer.parseInt(found.group(1)), start, Lsn.parse(found.group(2)))
          : null;
    } catch (NoLsnException | NumberFormatException unread) {
      return null;
    }
  }

  boolean isOf(Log log) {
    return timeline == log.timeline() && start == log.fork();
  }
}
