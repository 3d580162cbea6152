package io.antipode.dynamodb;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

/** How a stamp and a lineage lie in an item. */
final class Stored {
  /** The attribute that has an item's stamp. */
  static final String STAMP = "_ap";

  /** The attribute that has the lineage of an item's writer. */
  static final String LINEAGE = "_apl";

  /** Both: no reader of ours is shown them. */
  static final Set<String> OURS = Set.of(STAMP, LINEAGE);

  private Stored() {}

  /** Returns the attribute that is a stamp. */
  static AttributeValue stamp(long stamp) {
    return AttributeValue.fromN(Long.toString(stamp));
  }

  /** Returns the stamp of an item; null where it has none. */
  static @Nullable Long stampOf(Map<String, AttributeValue> item) {
    AttributeValue value = item.get(STAMP);
    try {
      return value == null || value.n() == null ? null : Long.valueOf(value.n());
    } catch (NumberFormatException error) {
      return null;
    }
  }

  /** Returns the lineage that lies in an item. */
  static Lineage lineageOf(Map<String, AttributeValue> item, String datastore) {
    AttributeValue held = item.get(LINEAGE);
    if (held == null) {
      return Lineage.empty();
    }
    // What is no text is no lineage, and not an empty one.
    return LineageText.stored(datastore, held.s() == null ? "" : held.s());
  }

  /** Returns an item as it is put, with its stamp; what another write left in it goes. */
  static Map<String, AttributeValue> stamped(Map<String, AttributeValue> item, long stamp) {
    Map<String, AttributeValue> stamped = new HashMap<>(item);
    stamped.keySet().removeAll(OURS);
    stamped.put(STAMP, stamp(stamp));
    return stamped;
  }

  /** Returns an item as its reader is shown it. */
  static Map<String, AttributeValue> without(Map<String, AttributeValue> item) {
    if (!item.containsKey(STAMP) && !item.containsKey(LINEAGE)) {
      return item;
    }
    Map<String, AttributeValue> shown = new HashMap<>(item);
    shown.keySet().removeAll(OURS);
    return shown;
  }

  /** Returns what two regions have alike of an item if it is the same in both. */
  static String digest(Map<String, AttributeValue> item) {
    try {
      byte[] text = text(AttributeValue.fromM(item)).getBytes(StandardCharsets.UTF_8);
      return Base64.getEncoder().encodeToString(MessageDigest.getInstance("SHA-256").digest(text));
    } catch (NoSuchAlgorithmException impossible) { // Every Java has it.
      throw new IllegalStateException(impossible);
    }
  }

  /** Returns a text of a value, the same for equal ones: sets and maps have no order. */
  private static String text(AttributeValue value) {
    Stream<String> parts =
        switch (value.type()) {
          case M ->
              new TreeMap<>(value.m())
                  .entrySet().stream().map(each -> quoted(each.getKey()) + text(each.getValue()));
          case L -> value.l().stream().map(Stored::text);
          case SS -> value.ss().stream().map(Stored::quoted).sorted();
          case NS -> value.ns().stream().map(Stored::quoted).sorted();
          case BS -> value.bs().stream().map(each -> quoted(base64(each.asByteArray()))).sorted();
          case B -> Stream.of(quoted(base64(value.b().asByteArray())));
          case S -> Stream.of(quoted(value.s()));
          case N -> Stream.of(quoted(value.n()));
          default -> Stream.of(quoted(value.toString()));
        };
    return value.type() + parts.collect(Collectors.joining(",", "(", ")"));
  }

  private static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  /** Returns a text with its length, so that no two lists of texts are alike. */
  private static String quoted(String text) {
    return text.length() + ":" + text;
  }
}
