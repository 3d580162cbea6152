package io.antipode.lineage;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import org.jspecify.annotations.Nullable;

/** Drops from a lineage what does not fit, and marks what was dropped. */
final class Shortening {
  private static final String SIZE = "size";
  private static final int MEMBER_BYTES = "antipode=".length();
  private static final int MAX_HELD = 4_096;
  private static final Lineage NOTHING_LEFT = Lineage.empty().marked(new Incomplete("", SIZE));

  /** How much there may be, and how much of it marks. */
  private record Limits(int bytes, int items, boolean countsOpen, int markBytes, int marks) {}

  private static final int HELD_ITEMS = 3_072;
  private static final Limits HELD =
      new Limits(Integer.MAX_VALUE, HELD_ITEMS, false, Integer.MAX_VALUE, HELD_ITEMS / 4);

  /** An item that may be dropped: how to keep it, and the mark that it leaves. */
  private record Part(String item, @Nullable Incomplete mark, Consumer<Lineage.Builder> keep) {
    int size() {
      return 1 + item.length();
    }
  }

  private final Lineage whole;
  private final Limits limits;
  private final List<Part> parts = new ArrayList<>();
  private final TreeMap<Incomplete, Integer> marks = new TreeMap<>(Incomplete.ORDER);
  private final TreeSet<String> dropped = new TreeSet<>();
  private boolean withoutSubjects;
  private long bytes;
  private long markBytes;
  private int items;

  private Shortening(Lineage whole, Limits limits) {
    this.whole = whole;
    this.limits = limits;
    collectParts();
    bytes = Encoder.of(whole).header().length();
    parts.forEach(part -> bytes += part.size());
    items = parts.size();
    whole.incomplete().forEach(this::mark);
    if (whole.openBranches() != 0) {
      bytes += 1 + Encoder.openItem(whole.openBranches()).length();
      items += limits.countsOpen() ? 1 : 0;
    }
  }

  /** Is notified of what a text, or a scope, lost. */
  interface Losses {
    Losses IGNORED =
        new Losses() {
          @Override
          public void hidden(Set<String> datastores) {}

          @Override
          public void dropped(Set<String> datastores) {}
        };

    /** These may not be named outside of the process. */
    void hidden(Set<String> datastores);

    /** Of these something did not fit; the empty name stands for what is of no known datastore. */
    void dropped(Set<String> datastores);
  }

  /**
   * Returns a text within a bound.
   *
   * @param notes what travels besides, as far as it fits: whoever adds them knows what they name
   */
  static String text(Lineage lineage, Bound bound, Collection<String> notes, Losses losses) {
    Lineage allowed = egress(lineage, bound.egress(), losses).withUnknown(notes);
    String text = Encoder.text(allowed);
    int room = Math.min(bound.maxBytes() - MEMBER_BYTES, Decoder.MAX_LENGTH);
    if (text.length() <= room && items(allowed, true) <= Decoder.MAX_ITEMS) {
      return text;
    }
    Limits limits = new Limits(room, Decoder.MAX_ITEMS, true, room / 4, Decoder.MAX_ITEMS / 4);
    Shortening shortening = new Shortening(allowed, limits);
    text = Encoder.text(shortening.shortened());
    if (text.length() > room) {
      throw new LineageTooLargeException(bound.maxBytes());
    }
    shortening.report(losses);
    return text;
  }

  static Lineage holdable(Lineage lineage, Losses losses) {
    if (items(lineage, false) <= MAX_HELD) {
      return lineage;
    }
    Shortening shortening = new Shortening(lineage, HELD);
    Lineage held = shortening.shortened();
    shortening.report(losses);
    return held;
  }

  private void report(Losses losses) {
    if (!dropped.isEmpty()) {
      losses.dropped(dropped);
    }
  }

  private static int items(Lineage lineage, boolean countsOpen) {
    return lineage.writes().size()
        + lineage.incomplete().size()
        + lineage.promises().size()
        + lineage.unknown().size()
        + (countsOpen && lineage.openBranches() != 0 ? 1 : 0);
  }

  static Lineage egress(Lineage lineage, @Nullable Set<String> names, Losses losses) {
    if (names == null) {
      return lineage;
    }
    Lineage listed = lineage.only(names);
    Lineage.Builder allowed = Lineage.builder().openBranches(lineage.openBranches());
    listed.writes().forEach(allowed::write);
    listed.incomplete().forEach(allowed::incomplete);
    listed.promises().forEach(allowed::promise);
    boolean lost =
        listed.writes().size() < lineage.writes().size()
            || listed.incomplete().size() < lineage.incomplete().size()
            || listed.promises().size() < lineage.promises().size()
            || !lineage.unknown().stream().allMatch(Shortening::isNoDependency);
    if (lost) {
      allowed.incomplete(new Incomplete("", "egress"));
    }
    TreeSet<String> hidden = new TreeSet<>();
    lineage.writes().forEach(write -> hidden.add(write.datastore()));
    lineage.promises().forEach(promise -> hidden.add(promise.datastore()));
    hidden.removeAll(names);
    if (!hidden.isEmpty()) {
      losses.hidden(hidden);
    }
    return allowed.build();
  }

  /** Whether an item of an unknown kind is certainly no dependency. */
  static boolean isNoDependency(String item) {
    return item.charAt(0) >= '0' && item.charAt(0) <= '9';
  }

  private Lineage shortened() {
    int gone = 0;
    while (!fits()) {
      boolean left = gone < parts.size();
      if (marksTakeTooMuch() && !(left && parts.get(gone).mark() == null)) {
        dropSubjects();
      } else if (left) {
        drop(parts.get(gone++));
      } else {
        whole.incomplete().forEach(mark -> dropped.add(mark.subject()));
        return NOTHING_LEFT;
      }
    }
    Lineage.Builder rest = Lineage.builder().openBranches(whole.openBranches());
    marks.keySet().forEach(rest::incomplete);
    parts.subList(gone, parts.size()).forEach(part -> part.keep().accept(rest));
    return rest.build();
  }

  private boolean fits() {
    return bytes <= limits.bytes() && items <= limits.items();
  }

  private void drop(Part part) {
    bytes -= part.size();
    items--;
    Incomplete mark = part.mark();
    if (mark != null) {
      dropped.add(mark.subject());
      mark(withoutSubjects ? new Incomplete("", mark.reason()) : mark);
    }
  }

  // Marks.

  private void mark(Incomplete mark) {
    int size = 1 + Encoder.item(mark).length();
    if (marks.putIfAbsent(mark, size) == null) {
      bytes += size;
      markBytes += size;
      items++;
    }
  }

  private boolean marksTakeTooMuch() {
    return !withoutSubjects && (markBytes > limits.markBytes() || marks.size() > limits.marks());
  }

  private void dropSubjects() {
    withoutSubjects = true;
    TreeSet<String> reasons = new TreeSet<>();
    marks.keySet().forEach(mark -> reasons.add(mark.reason()));
    bytes -= markBytes;
    items -= marks.size();
    markBytes = 0;
    marks.clear();
    reasons.forEach(reason -> mark(new Incomplete("", reason)));
  }

  // What goes first.

  private void collectParts() {
    Comparator<Part> lastBytesFirst = Comparator.comparing(Part::item, Comparator.reverseOrder());
    Comparator<Part> notesFirst = Comparator.comparing(part -> part.mark() != null);
    whole.unknown().stream()
        .map(Shortening::part)
        .sorted(notesFirst.thenComparing(lastBytesFirst))
        .forEach(parts::add);
    writesInOrder().map(Shortening::part).forEach(parts::add);
    whole.promises().stream().map(Shortening::part).sorted(lastBytesFirst).forEach(parts::add);
  }

  private static Part part(String unknown) {
    Incomplete mark = isNoDependency(unknown) ? null : new Incomplete("", SIZE);
    return new Part(unknown, mark, rest -> rest.unknown(unknown));
  }

  private static Part part(Ranked write) {
    WriteId id = write.id();
    return new Part(write.item(), new Incomplete(id.datastore(), SIZE), rest -> rest.write(id));
  }

  private static Part part(Promise promise) {
    return new Part(
        Encoder.item(promise),
        new Incomplete(promise.datastore(), "promise"),
        rest -> rest.promise(promise));
  }

  /** A write with its item, the checksum of that, and its turn among those of its datastore. */
  private record Ranked(WriteId id, String item, long checksum, int turn) {}

  private Stream<Ranked> writesInOrder() {
    Encoder encoder = Encoder.of(whole);
    List<Ranked> writes = new ArrayList<>();
    for (WriteId write : whole.writes()) {
      String item = encoder.item(write);
      CRC32 checksum = new CRC32();
      checksum.update(item.getBytes(StandardCharsets.US_ASCII));
      writes.add(new Ranked(write, item, checksum.getValue(), 0));
    }
    writes.sort(Comparator.comparingLong(Ranked::checksum).thenComparing(Ranked::item));
    Map<List<Object>, Integer> turns = new HashMap<>();
    writes.replaceAll(
        write -> {
          WriteId id = write.id();
          List<Object> equals =
              List.of(id.datastore(), id.isCovering(), id.isReceived(), id.writtenHour());
          int turn = turns.merge(equals, 1, Integer::sum);
          return new Ranked(id, write.item(), write.checksum(), turn);
        });
    return writes.stream()
        .sorted(
            Comparator.<Ranked, Boolean>comparing(write -> !write.id().isCovering())
                .thenComparing(write -> !write.id().isReceived())
                .thenComparingInt(write -> write.id().writtenHour())
                .thenComparing(Comparator.comparingInt(Ranked::turn).reversed())
                .thenComparing(Comparator.comparingLong(Ranked::checksum).reversed())
                .thenComparing(Ranked::item, Comparator.reverseOrder()));
  }
}
