package io.antipode.postgresql;

import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Positions in a log, as unsigned numbers of bytes. */
final class Lsn {
  private static final Pattern TEXT = Pattern.compile("([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})");
  private static final long PAGE = 8192;

  /** Bytes of the header of a page, and of the first page of a segment. */
  private static final Set<Long> HEADERS = Set.of(0x18L, 0x28L);

  private Lsn() {}

  /**
   * Returns a position as PostgreSQL writes it, such as {@code 16/B374D848}.
   *
   * @throws NoLsnException if it is none
   */
  static long parse(String text) throws NoLsnException {
    Matcher found = TEXT.matcher(text);
    if (!found.matches()) {
      throw new NoLsnException("'" + text + "' is no position of a log");
    }
    return (Long.parseLong(found.group(1), 16) << 32) | Long.parseLong(found.group(2), 16);
  }

  /**
   * Returns an insert position without the header of a page on which nothing lies yet: a commit
   * that ends a page has the next header behind it, which is not flushed before the next record.
   */
  static long flushedEnd(long inserted) {
    long header = Long.remainderUnsigned(inserted, PAGE);
    return HEADERS.contains(header) ? inserted - header : inserted;
  }

  static boolean isAtLeast(long position, long other) {
    return Long.compareUnsigned(position, other) >= 0;
  }

  /** Returns it as PostgreSQL writes it. */
  static String text(long position) {
    return String.format(Locale.ROOT, "%X/%X", position >>> 32, position & 0xFFFF_FFFFL);
  }
}
