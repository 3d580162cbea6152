package io.antipode.sns;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageRequest;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageResponse;

/** The attribute that consumers ask for and do not show: what it was. Thread-safe. */
final class Hidden {
  /** More messages are not handled at once. */
  private static final int MOST_REMEMBERED = 4_096;

  /** What a message has that no client here received: the attribute may be hidden. */
  private static final String UNKNOWN = "";

  /** By the ids of messages, which every copy has; null for those without the attribute. */
  private final Map<String, @Nullable String> texts =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, @Nullable String> eldest) {
          return size() > MOST_REMEMBERED;
        }
      };

  /** Returns a request that asks for the attribute. */
  static ReceiveMessageRequest asked(ReceiveMessageRequest request) {
    return request.messageAttributeNames().contains(Label.NAME)
        ? request
        : request.copy(
            asked -> {
              List<String> names = new ArrayList<>(request.messageAttributeNames());
              names.add(Label.NAME);
              asked.messageAttributeNames(names);
            });
  }

  /** Remembers what the messages of a reply have. */
  void note(ReceiveMessageResponse reply) {
    synchronized (texts) {
      for (Message each : reply.messages()) {
        @Nullable String unused =
            texts.put(each.messageId(), Label.SQS.in(each.messageAttributes()));
      }
    }
  }

  /** Returns a reply as an application is shown it that did not name the attribute. */
  static ReceiveMessageResponse shown(ReceiveMessageResponse reply) {
    return reply.hasMessages()
        ? reply.toBuilder().messages(reply.messages().stream().map(Hidden::shown).toList()).build()
        : reply;
  }

  private static Message shown(Message message) {
    if (Label.SQS.in(message.messageAttributes()) == null) {
      return message;
    }
    Map<String, MessageAttributeValue> others = new HashMap<>(message.messageAttributes());
    others.keySet().remove(Label.NAME);
    return message.toBuilder()
        .messageAttributes(others.isEmpty() ? null : others)
        .md5OfMessageAttributes(
            Checksum.of(others, message.messageAttributes(), message.md5OfMessageAttributes()))
        .build();
  }

  /**
   * Returns the text of a message or a copy of one; null where it has none, and nothing that can be
   * read where that is not known.
   */
  @Nullable String textOf(Message message) {
    @Nullable String text = labelOf(message);
    return text != null || isKnown(message) || Received.isWrapped(message.body()) ? text : UNKNOWN;
  }

  /** Returns the text of a message or a copy of one; null where nobody here knows of one. */
  @Nullable String labelOf(Message message) {
    @Nullable String text = Received.textOf(message);
    if (text != null) {
      return text;
    }
    synchronized (texts) {
      return texts.get(message.messageId());
    }
  }

  private boolean isKnown(Message message) {
    synchronized (texts) {
      return texts.containsKey(message.messageId());
    }
  }
}
