package io.antipode.agent;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** A lineage in words. */
final class Explanation {
  private Explanation() {}

  static List<String> of(Lineage lineage) {
    List<String> lines = new ArrayList<>();
    lineage.writes().forEach(write -> lines.add(line(write)));
    lineage
        .incomplete()
        .forEach(
            mark ->
                lines.add(
                    "incomplete: "
                        + mark.reason()
                        + (mark.subject().isEmpty() ? "" : ", of " + mark.subject())));
    lineage
        .promises()
        .forEach(
            promise ->
                lines.add(
                    "promise: "
                        + promise.datastore()
                        + " "
                        + promise.id()
                        + ", until "
                        + Instant.ofEpochSecond(promise.expiresS())));
    if (lineage.openBranches() != 0) {
      lines.add("open branches: " + Long.toUnsignedString(lineage.openBranches()));
    }
    lineage.unknown().forEach(item -> lines.add("of an unknown kind: " + item));
    return lines.isEmpty() ? List.of("nothing") : lines;
  }

  private static String line(WriteId write) {
    String hour =
        write.writtenHour() == 0
            ? "hour not known"
            : "in the hour of " + Instant.ofEpochSecond(write.writtenHour() * 3_600L);
    return "write: " + write + ", " + hour;
  }
}
