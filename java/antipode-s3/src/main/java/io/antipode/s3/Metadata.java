package io.antipode.s3;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.LineageTooLargeException;
import io.antipode.request.Recording;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** How a lineage lies in an object: in one item of its user metadata. */
final class Metadata {
  /** The item that has the lineage of an object's writer. */
  static final String NAME = "antipode";

  /** Bytes of all of an object's user metadata, names and values. AWS refuses more. */
  private static final int MOST_BYTES = 2_048;

  private Metadata() {}

  private static int bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }

  /**
   * Returns metadata with a lineage, which is cut to the room that there is; null where there is
   * none, not even for the mark that says so.
   */
  static @Nullable Map<String, String> labelled(Map<String, String> metadata, Lineage lineage) {
    Map<String, String> labelled = new HashMap<>(without(metadata));
    int used =
        labelled.entrySet().stream()
            .mapToInt(each -> bytes(each.getKey()) + bytes(each.getValue()))
            .sum();
    Recording.recordStored(null);
    try {
      labelled.put(NAME, LineageText.stored(lineage, MOST_BYTES - used - NAME.length()));
    } catch (LineageTooLargeException error) {
      return null;
    }
    return labelled;
  }

  /** Returns metadata without the lineage. */
  static Map<String, String> without(Map<String, String> metadata) {
    if (metadata.keySet().stream().noneMatch(NAME::equalsIgnoreCase)) {
      return metadata;
    }
    Map<String, String> others = new HashMap<>(metadata);
    others.keySet().removeIf(NAME::equalsIgnoreCase);
    return others;
  }

  /** Returns the lineage that lies in the metadata of an object. */
  static Lineage lineageOf(Map<String, String> metadata, String datastore) {
    return metadata.entrySet().stream()
        .filter(each -> NAME.equalsIgnoreCase(each.getKey()))
        .findFirst()
        .map(each -> LineageText.stored(datastore, each.getValue()))
        .orElseGet(Lineage::empty);
  }
}
