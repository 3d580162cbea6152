package io.antipode.sns;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageRequest;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageResponse;

/** The attribute that consumers ask for and do not show: what it was. Thread-safe. */
final class Hidden {
  /** By their receipt handles, as long as messages have them: copies share a message's. */
  private final Map<String, String> texts = new WeakHashMap<>();

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

  /** Returns a reply as an application is shown it that did not name the attribute. */
  ReceiveMessageResponse shown(ReceiveMessageResponse reply) {
    return reply.hasMessages()
        ? reply.toBuilder().messages(reply.messages().stream().map(this::shown).toList()).build()
        : reply;
  }

  private Message shown(Message message) {
    @Nullable String text = Label.SQS.in(message.messageAttributes());
    if (text == null) {
      return message;
    }
    synchronized (texts) {
      String unused = texts.remove(message.receiptHandle()); // It lives as long as this message.
      unused = texts.put(message.receiptHandle(), text);
    }
    Map<String, MessageAttributeValue> others = new HashMap<>(message.messageAttributes());
    others.keySet().remove(Label.NAME);
    return message.toBuilder()
        .messageAttributes(others.isEmpty() ? null : others)
        .md5OfMessageAttributes(
            Checksum.of(others, message.messageAttributes(), message.md5OfMessageAttributes()))
        .build();
  }

  /** Returns what was hidden of a message; null for nothing. */
  @Nullable String of(Message message) {
    synchronized (texts) {
      return texts.get(message.receiptHandle());
    }
  }
}
