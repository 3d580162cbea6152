package io.antipode.sns;

import io.antipode.barrier.Shims;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.runtime.Counts;
import io.antipode.s3.S3Events;
import io.antipode.s3.S3Shim;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;

/** Events of S3 that come as messages: these have no label, and name what they depend on. */
final class BucketEvents {
  /**
   * What is in the text of each event of S3: its source, by itself or by EventBridge, or a test.
   */
  private static final Pattern SIGNS = Pattern.compile("aws[:.]s3|s3:TestEvent");

  /** What an event has, or each of its records. */
  private static final List<String> PARTS = List.of("Records", "s3", "Event", "detail");

  private static final boolean CAN_READ = isPresent("io.antipode.s3.S3Events");

  private BucketEvents() {}

  private static boolean isPresent(String name) {
    try {
      Class.forName(name, false, BucketEvents.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException | LinkageError error) {
      return false;
    }
  }

  /** Returns whether the module is here that reads events of S3. */
  static boolean canRead() {
    return CAN_READ;
  }

  /** Returns the event of S3 in the body of a message, raw or in the envelope of SNS; or null. */
  static @Nullable Map<?, ?> in(@Nullable String body) {
    if (body == null || !SIGNS.matcher(body).find()) {
      return null;
    }
    @Nullable JsonNode envelope = Received.envelope(body);
    return parsed(envelope == null ? body : Received.text(envelope, "Message"));
  }

  /** Returns the event of S3 that a record of AWS Lambda is, or an event of it; or null. */
  static @Nullable Map<?, ?> in(Map<?, ?> record) {
    if (record.get("body") instanceof String body) {
      return in(body);
    }
    return record.containsKey("Sns")
        ? parsed(
            record.get("Sns") instanceof Map<?, ?> told
                    && told.get("Message") instanceof String text
                ? text
                : null)
        : isEvent(record) ? record : null;
  }

  private static @Nullable Map<?, ?> parsed(@Nullable String text) {
    if (text == null || !SIGNS.matcher(text).find()) {
      return null;
    }
    try {
      return plain(JsonNode.parser().parse(text)) instanceof Map<?, ?> event && isEvent(event)
          ? event
          : null;
    } catch (RuntimeException | StackOverflowError error) { // It only begins as one, or is a trap.
      return null;
    }
  }

  /** Without the module nobody knows for sure: what may be one is logged, and is none. */
  private static boolean isEvent(Map<?, ?> found) {
    return PARTS.stream().anyMatch(found::containsKey)
        && (CAN_READ ? S3Events.isEvent(found) : SIGNS.matcher(found.toString()).find());
  }

  /**
   * Returns maps, lists and texts for what a parser made; null for all that an event has none of.
   */
  private static @Nullable Object plain(JsonNode node) {
    if (node.isObject()) {
      Map<String, @Nullable Object> made = new HashMap<>();
      node.asObject().forEach((name, each) -> made.put(name, plain(each)));
      return made;
    }
    if (node.isArray()) {
      return node.asArray().stream().map(BucketEvents::plain).collect(Collectors.toList());
    }
    return node.isString() ? node.asString() : null;
  }

  /**
   * Returns what an event depends on; null where nobody says which datastore its bucket is.
   *
   * @param datastore of the message, for marks
   * @param events of the bucket; null for that of the one shim of S3 that is here
   */
  static @Nullable Lineage lineage(Map<?, ?> event, String datastore, @Nullable String events) {
    List<String> names =
        events != null ? List.of(events) : CAN_READ ? OfS3.datastores() : List.of();
    if (names.size() == 1) {
      return OfS3.lineage(names.get(0), event, datastore);
    }
    Counts.logOnce(
        "s3_event",
        datastore,
        String.valueOf(names.size()),
        () ->
            "a message of '"
                + datastore
                + "' is an event of S3, and "
                + (CAN_READ
                    ? names.size()
                        + " datastores of S3 have a client here: say which one its"
                        + " bucket is, SnsShim.builder(...).events(\"...\")"
                    : "antipode-s3 is not on the class path: add it")
                + ", or who handles it may read what was before it");
    return names.isEmpty() ? null : Lineage.empty().marked(new Incomplete(datastore, "unsampled"));
  }

  /** What needs the module of S3: loaded where that is. */
  private static final class OfS3 {
    static List<String> datastores() {
      return Shims.datastores().stream()
          .filter(name -> Shims.of(name).stream().anyMatch(S3Shim.class::isInstance))
          .toList();
    }

    static Lineage lineage(String name, Map<?, ?> event, String datastore) {
      try {
        return S3Events.lineage(name, event);
      } catch (IllegalArgumentException error) {
        return LineageText.unreadable(datastore, String.valueOf(error.getMessage()));
      }
    }
  }
}
