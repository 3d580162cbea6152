package io.antipode.sns;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkBytes;

/**
 * How a lineage lies in a message that is sent: in one attribute.
 *
 * @param <V> what the attributes of a service are
 */
final class Label<V> {
  /** The attribute of a message that has what it depends on. */
  static final String NAME = "antipode";

  /** Bytes of a message, or of a batch, attributes included. */
  static final int MOST_BYTES = 262_144;

  /** How many attributes a message may have: with raw delivery SNS drops one that has more. */
  private static final int MOST_ATTRIBUTES = 10;

  private static final String TYPE = "String";

  /** Of clients of SNS. */
  static final Label<software.amazon.awssdk.services.sns.model.MessageAttributeValue> SNS =
      new Label<>(
          text ->
              software.amazon.awssdk.services.sns.model.MessageAttributeValue.builder()
                  .dataType(TYPE)
                  .stringValue(text)
                  .build(),
          each -> new Held(each.dataType(), each.stringValue(), each.binaryValue()));

  /** Of clients of SQS. */
  static final Label<software.amazon.awssdk.services.sqs.model.MessageAttributeValue> SQS =
      new Label<>(
          text ->
              software.amazon.awssdk.services.sqs.model.MessageAttributeValue.builder()
                  .dataType(TYPE)
                  .stringValue(text)
                  .build(),
          each -> new Held(each.dataType(), each.stringValue(), each.binaryValue()));

  /** What is in an attribute. */
  private record Held(@Nullable String type, @Nullable String text, @Nullable SdkBytes bytes) {
    int size() {
      int value = text != null ? Label.size(text) : bytes == null ? 0 : bytes.asByteArray().length;
      return (type == null ? 0 : Label.size(type)) + value;
    }
  }

  private final Function<String, V> made;
  private final Function<V, Held> held;

  private Label(Function<String, V> made, Function<V, Held> held) {
    this.made = made;
    this.held = held;
  }

  private static int size(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }

  /** Returns the bytes of a message, its attributes included. */
  int size(@Nullable String body, Map<String, V> attributes) {
    return (body == null ? 0 : size(body))
        + attributes.entrySet().stream()
            .mapToInt(each -> size(each.getKey()) + held.apply(each.getValue()).size())
            .sum();
  }

  /**
   * Returns attributes with ours; null where it does not fit: into the room, or beside ten.
   *
   * @param room how many bytes it may have
   */
  @Nullable Map<String, V> on(Map<String, V> attributes, String text, int room) {
    V ours = made.apply(text);
    Map<String, V> all = new HashMap<>(attributes);
    all.put(NAME, ours);
    boolean fits = all.size() <= MOST_ATTRIBUTES && size(NAME) + held.apply(ours).size() <= room;
    return fits ? all : null;
  }

  /**
   * Returns what attributes say that a message depends on: null where they say nothing, and an
   * empty text where ours is none, which is unreadable.
   */
  @Nullable String in(Map<String, V> attributes) {
    @Nullable V ours = attributes.get(NAME);
    if (ours == null) {
      return null;
    }
    @Nullable String text = held.apply(ours).text();
    return text == null ? "" : text;
  }
}
