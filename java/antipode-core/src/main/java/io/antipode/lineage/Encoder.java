package io.antipode.lineage;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Writes canonical items and texts. */
final class Encoder {
  private final int headerHour;

  private Encoder(int headerHour) {
    this.headerHour = headerHour;
  }

  /** Returns the encoder of items under the header of a lineage. */
  static Encoder of(Lineage lineage) {
    return new Encoder(lineage.writes().stream().mapToInt(WriteId::writtenHour).max().orElse(0));
  }

  static String text(Lineage lineage) {
    Encoder encoder = of(lineage);
    List<String> items = new ArrayList<>(lineage.unknown());
    lineage.writes().forEach(write -> items.add(encoder.item(write)));
    lineage.incomplete().forEach(mark -> items.add(item(mark)));
    lineage.promises().forEach(promise -> items.add(item(promise)));
    if (lineage.openBranches() != 0) {
      items.add(openItem(lineage.openBranches()));
    }
    Collections.sort(items);
    StringBuilder text = new StringBuilder(encoder.header());
    items.forEach(item -> text.append('~').append(item));
    return text.toString();
  }

  String header() {
    return headerHour == 0 ? "1" : "1" + Grammar.number(headerHour);
  }

  String item(WriteId write) {
    String key = write.key();
    char kind = 'k';
    String last;
    if (Grammar.isPackedUuid(key)) {
      kind = 'u';
      last = Grammar.packedUuid(key);
    } else if (key.length() == 40 && Grammar.isHex(key)) {
      kind = 'r';
      last = Grammar.packedHex(key);
    } else {
      last = Grammar.last(key);
    }
    String opaque = write.opaqueVersion();
    return (write.isCovering() ? Character.toUpperCase(kind) : kind)
        + Grammar.token(write.datastore())
        + "."
        + age(write.writtenHour())
        + (opaque == null ? Grammar.number(write.version()) : "_" + Grammar.token(opaque))
        + "."
        + last;
  }

  private String age(int hour) {
    if (hour == headerHour) {
      return "";
    }
    return hour == 0 ? "-" : Grammar.number(headerHour - hour) + "-";
  }

  static String item(Incomplete mark) {
    return "i" + Grammar.token(mark.reason()) + "." + Grammar.last(mark.subject());
  }

  static String item(Promise promise) {
    return "p"
        + Grammar.token(promise.datastore())
        + "."
        + Grammar.number(promise.expiresS())
        + "."
        + Grammar.packedHex(promise.id());
  }

  static String openItem(long openBranches) {
    return "o" + Grammar.number(openBranches);
  }
}
