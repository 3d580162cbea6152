package io.antipode.sns;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.services.sqs.model.Message;

/** What a received message says that it depends on. */
final class Received {
  private Received() {}

  /** Returns the text of a message, raw or in the envelope of SNS; null where it says nothing. */
  static @Nullable String textOf(Message message) {
    @Nullable String text = Label.SQS.in(message.messageAttributes());
    return text == null ? wrapped(message.body()) : text;
  }

  /** Returns the text of a record of an event of AWS Lambda; null where it says nothing. */
  static @Nullable String textOf(Map<?, ?> each) {
    if (each.get("Sns") instanceof Map<?, ?> published) {
      return in(published.get("MessageAttributes"), "Value");
    }
    @Nullable String text = in(each.get("messageAttributes"), "stringValue");
    return text == null && each.get("body") instanceof String body ? wrapped(body) : text;
  }

  private static @Nullable String in(@Nullable Object attributes, String value) {
    if (!(attributes instanceof Map<?, ?> all) || !all.containsKey(Label.NAME)) {
      return null;
    }
    return all.get(Label.NAME) instanceof Map<?, ?> ours && ours.get(value) instanceof String text
        ? text
        : "";
  }

  /** Returns whether a body is an envelope of SNS. */
  static boolean isWrapped(@Nullable String body) {
    return envelope(body) != null;
  }

  /** Returns the envelope of SNS, where a body is one. */
  static @Nullable JsonNode envelope(@Nullable String body) {
    if (body == null || !body.startsWith("{") || !body.contains("\"Notification\"")) {
      return null;
    }
    try {
      JsonNode envelope = JsonNode.parser().parse(body);
      return "Notification".equals(text(envelope, "Type")) ? envelope : null;
    } catch (RuntimeException error) { // It only begins as one.
      return null;
    }
  }

  /** Returns what the envelope of SNS says, where a body is one. */
  private static @Nullable String wrapped(@Nullable String body) {
    @Nullable JsonNode envelope = envelope(body);
    @Nullable JsonNode attributes =
        envelope == null ? null : envelope.field("MessageAttributes").orElse(null);
    @Nullable JsonNode ours =
        attributes == null || !attributes.isObject()
            ? null
            : attributes.field(Label.NAME).orElse(null);
    if (ours == null) {
      return null;
    }
    @Nullable String text = text(ours, "Value");
    return text == null ? "" : text;
  }

  /** Returns a field that is a text; null without one. */
  static @Nullable String text(JsonNode node, String field) {
    return node.isObject()
        ? node.field(field).filter(JsonNode::isString).map(JsonNode::asString).orElse(null)
        : null;
  }

  /** Returns the lineage of a message; what cannot be read is marked, and never empty. */
  static Lineage lineage(@Nullable String text, String datastore) {
    if (text == null) {
      return Lineage.empty();
    }
    return text.isEmpty()
        ? LineageText.unreadable(
            datastore, "an empty attribute, or a message that no client here received")
        : LineageText.readable(datastore, text);
  }
}
