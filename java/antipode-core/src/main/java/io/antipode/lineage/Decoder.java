package io.antipode.lineage;

/** Reads a text, in one pass and in time linear in its length. */
final class Decoder {
  static final int MAX_LENGTH = 65_536;
  static final int MAX_ITEMS = 4_096;
  private static final int MAX_FOREIGN = 65_528;
  private static final int MAX_HOUR_DIGITS = 5;
  private static final int MAX_EXPIRY_DIGITS = 8;

  private final String text;
  private final Lineage.Builder lineage = Lineage.builder();
  private int headerHour;

  Decoder(String text) {
    this.text = text;
  }

  Lineage decode() {
    boolean foreign = Grammar.isForeign(text);
    int longest = foreign ? MAX_FOREIGN : MAX_LENGTH;
    if (text.length() > longest) {
      throw refused("lineage_too_long", "more than " + longest + " characters", longest);
    }
    int[] ends = partEnds();
    if (foreign) {
      return lineage.unknown(Grammar.carried(text)).build();
    }
    header(ends[0]);
    int[] last = lastParts(ends);
    for (int item = 0, part = 1; part < ends.length; part = last[item++] + 1) {
      item(ends[part - 1] + 1, ends[last[item]], last[item] == ends.length - 1);
    }
    return lineage.build();
  }

  /** Where each part between two tildes ends. */
  private int[] partEnds() {
    int tildes = 0;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '~') {
        tildes++;
      } else if (!Grammar.isCharacter(c)) {
        throw refused("lineage_alphabet", "a character outside the alphabet", i);
      }
    }
    int[] ends = new int[tildes + 1];
    int part = 0;
    for (int i = text.indexOf('~'); i >= 0; i = text.indexOf('~', i + 1)) {
      ends[part++] = i;
    }
    ends[part] = text.length();
    return ends;
  }

  private void header(int end) {
    String hour = end > 0 && text.charAt(0) == '1' ? text.substring(1, end) : "-";
    if (hour.isEmpty()) {
      return;
    }
    if (hour.length() > MAX_HOUR_DIGITS || !Grammar.isNumber(hour) || hour.equals("0")) {
      throw refused("lineage_header", "no header", 0);
    }
    headerHour = Integer.parseInt(hour, 36);
  }

  /** The last part of each item: a carried text takes the parts that its tildes made. */
  private int[] lastParts(int[] ends) {
    int[] last = new int[Math.min(ends.length, MAX_ITEMS + 1)];
    int items = 0;
    for (int part = 1; part < ends.length; part++) {
      if (items == MAX_ITEMS) {
        throw refused("lineage_too_many", "more than 4,096 items", ends[part - 1] + 1);
      }
      long further = furtherParts(ends[part - 1] + 1, ends[part]);
      if (Long.compareUnsigned(further, ends.length - 1 - part) <= 0) {
        part += (int) further;
      }
      last[items++] = part;
    }
    return last;
  }

  private long furtherParts(int start, int end) {
    String part = text.substring(start, end);
    int dot = part.indexOf('.');
    if (!part.startsWith("z") || dot < 0) {
      return 0;
    }
    try {
      return Grammar.number(part.substring(1, dot));
    } catch (Malformed noCarriedItem) {
      return 0;
    }
  }

  private void item(int start, int end, boolean isLast) {
    String item = text.substring(start, end);
    try {
      if (item.isEmpty()) {
        throw new Malformed("an empty item");
      }
      String rest = item.substring(1);
      switch (item.charAt(0)) {
        case 'u', 'U', 'r', 'R', 'k', 'K' -> lineage.write(write(item.charAt(0), rest));
        case 'i' -> lineage.incomplete(mark(rest));
        case 'p' -> lineage.promise(promise(rest));
        case 'o' -> lineage.openBranches(Grammar.number(rest));
        case 'z' -> lineage.unknown(carried(item));
        case 'h' -> hmac(isLast);
        default -> lineage.unknown(item);
      }
    } catch (Malformed malformed) {
      throw refused("lineage_item", String.valueOf(malformed.getMessage()), start);
    }
  }

  private WriteId write(char kind, String fields) throws Malformed {
    int first = dot(fields, 0);
    int second = dot(fields, first + 1);
    String datastore = Grammar.parseName(fields.substring(0, first));
    String stamp = fields.substring(first + 1, second);
    String log = fields.substring(second + 1);
    String key =
        switch (kind) {
          case 'u', 'U' -> Grammar.parseUuid(log);
          case 'r', 'R' -> Grammar.hex(log, 20);
          default -> Grammar.parseLast(log);
        };
    int hour = headerHour;
    int dash = stamp.startsWith("_") ? -1 : stamp.indexOf('-');
    if (dash >= 0) {
      hour = hour(stamp.substring(0, dash));
    }
    String version = stamp.substring(dash + 1);
    WriteId write =
        version.startsWith("_")
            ? WriteId.ofOpaque(datastore, key, Grammar.parseToken(version.substring(1)))
            : WriteId.of(datastore, key, Grammar.number(version));
    write = write.writtenAt(hour).asReceived();
    return Character.isUpperCase(kind) ? write.asCovering() : write;
  }

  private int hour(String age) throws Malformed {
    if (headerHour == 0) {
      throw new Malformed("an age under a header without an hour");
    }
    if (age.isEmpty()) {
      return 0;
    }
    long hours = Grammar.number(age);
    if (Long.compareUnsigned(hours, headerHour) >= 0) {
      throw new Malformed("an age as old as the header's hour");
    }
    return headerHour - (int) hours;
  }

  private static Incomplete mark(String fields) throws Malformed {
    int first = dot(fields, 0);
    String reason = Grammar.parseToken(fields.substring(0, first));
    return new Incomplete(Grammar.parseLast(fields.substring(first + 1)), reason);
  }

  private static Promise promise(String fields) throws Malformed {
    int first = dot(fields, 0);
    int second = dot(fields, first + 1);
    String expiry = fields.substring(first + 1, second);
    if (expiry.length() > MAX_EXPIRY_DIGITS) {
      throw new Malformed("an expiry of more than 8 digits");
    }
    return new Promise(
        Grammar.parseName(fields.substring(0, first)),
        Grammar.hex(fields.substring(second + 1), 16),
        Grammar.number(expiry));
  }

  private static String carried(String item) throws Malformed {
    if (!Grammar.isCarried(item)) {
      throw new Malformed("no text of another version");
    }
    return item;
  }

  private static void hmac(boolean isLast) throws Malformed {
    if (!isLast) {
      throw new Malformed("an item of kind h that is not the last one");
    }
  }

  private static int dot(String fields, int from) throws Malformed {
    int dot = fields.indexOf('.', from);
    if (dot < 0) {
      throw new Malformed("a field is missing");
    }
    return dot;
  }

  private static LineageDecodeException refused(String code, String reason, int offset) {
    return new LineageDecodeException(code, reason, offset);
  }
}
