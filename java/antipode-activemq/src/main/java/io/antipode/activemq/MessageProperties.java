package io.antipode.activemq;

import io.antipode.messages.MessageHeaders;
import io.antipode.propagation.Headers;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Topic;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Map;
import org.apache.activemq.ActiveMQMessageTransformation;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.util.JMSExceptionSupport;
import org.jspecify.annotations.Nullable;

/**
 * What this library puts into the properties of a message and finds there, and their limit. The
 * names are those of STOMP's headers, which a broker hands on as properties. Without I/O.
 */
final class MessageProperties {
  /** Of all properties of a message, as STOMP counts them: a broker's limit, once it is read so. */
  private static final int MOST_BYTES = 8_192;

  /** Characters that are two in a frame. */
  private static final String ESCAPED = "\\:\n\r";

  private MessageProperties() {}

  /** Returns what a message says of this library's; what cannot be read is no text. */
  static Map<String, Object> of(Message message) {
    Map<String, Object> found = new HashMap<>();
    try {
      for (String name : MessageHeaders.NAMES) {
        Object value = message.getObjectProperty(name);
        if (value != null) {
          found.put(name, value);
        }
      }
      return found;
    } catch (JMSException error) {
      return Map.of(Headers.BAGGAGE, error);
    }
  }

  /** Returns a copy of a message, whose properties may be changed. */
  static ActiveMQMessage copy(Message given) throws JMSException {
    ActiveMQMessage copy = ActiveMQMessageTransformation.transformMessage(given, null);
    if (copy == given) {
      copy = (ActiveMQMessage) copy.copy();
    }
    copy.setReadOnlyProperties(false);
    return copy;
  }

  /**
   * Puts what a message depends on into its properties: of the lineage what there is room for.
   *
   * @param destination to which it goes
   * @param further properties that its producer adds
   * @return what was put there; null where not even the mark of what was cut has room, and the
   *     message names no write then
   */
  static MessageHeaders.@Nullable Sent put(
      ActiveMQMessage message,
      Destination destination,
      Map<String, Object> further,
      MessageHeaders.Sent sent)
      throws JMSException {
    Map<String, Object> others = others(message, destination);
    others.putAll(further);
    others.keySet().removeAll(MessageHeaders.NAMES);
    int excess = size(others) + size(sent.headers()) - MOST_BYTES;
    MessageHeaders.Sent fitting = excess <= 0 ? sent : sent.shortened(excess);
    set(message, (fitting == null ? MessageHeaders.plain(of(message)) : fitting).headers());
    return fitting;
  }

  private static void set(ActiveMQMessage message, @Nullable Map<String, Object> headers)
      throws JMSException {
    try {
      for (String name : MessageHeaders.NAMES) {
        Object value = headers == null ? null : headers.get(name);
        if (value == null) {
          message.removeProperty(name);
        } else {
          message.setProperty(name, value);
        }
      }
    } catch (IOException error) {
      throw JMSExceptionSupport.create(error);
    }
  }

  /**
   * Returns what stands in the header of a message's frame besides what this library puts there.
   */
  private static Map<String, Object> others(ActiveMQMessage message, Destination destination)
      throws JMSException {
    Map<String, Object> all = new HashMap<>();
    Enumeration<?> names = message.getPropertyNames();
    while (names.hasMoreElements()) {
      String name = names.nextElement().toString();
      all.put(name, message.getObjectProperty(name));
    }
    all.put("destination", inFrame(destination));
    all.put("correlation-id", message.getJMSCorrelationID());
    all.put("reply-to", inFrame(message.getJMSReplyTo()));
    all.put("type", message.getJMSType());
    return all;
  }

  /** Returns how a frame spells a destination: {@code /topic/news}. */
  private static @Nullable String inFrame(@Nullable Destination destination) {
    return destination == null ? null : "/" + destination.toString().replaceFirst("://", "/");
  }

  /** Returns the bytes of properties in a frame: after each name a colon, after a value a line. */
  private static int size(@Nullable Map<String, Object> properties) {
    int size = 0;
    for (Map.Entry<String, Object> each :
        (properties == null ? Map.<String, Object>of() : properties).entrySet()) {
      if (each.getValue() != null) {
        size += size(each.getKey()) + 1 + size(each.getValue().toString()) + 1;
      }
    }
    return size;
  }

  private static int size(String text) {
    long escaped = text.chars().filter(letter -> ESCAPED.indexOf(letter) >= 0).count();
    return text.getBytes(StandardCharsets.UTF_8).length + (int) escaped;
  }

  /**
   * Gives the application's message what sending set, as if that had been sent itself.
   *
   * @param further properties that its producer added
   */
  static void giveBack(ActiveMQMessage sent, Message given, Map<String, Object> further)
      throws JMSException {
    given.setJMSDestination(sent.getJMSDestination());
    given.setJMSDeliveryMode(sent.getJMSDeliveryMode());
    given.setJMSDeliveryTime(sent.getJMSDeliveryTime());
    given.setJMSExpiration(sent.getJMSExpiration());
    given.setJMSPriority(sent.getJMSPriority());
    given.setJMSMessageID(sent.getJMSMessageID());
    given.setJMSTimestamp(sent.getJMSTimestamp());
    given.setJMSRedelivered(sent.getJMSRedelivered());
    given.setJMSCorrelationID(sent.getJMSCorrelationID());
    given.setJMSReplyTo(sent.getJMSReplyTo());
    given.setJMSType(sent.getJMSType());
    for (Map.Entry<String, Object> each : further.entrySet()) {
      given.setObjectProperty(each.getKey(), each.getValue());
    }
  }

  /** Returns whether receipts can listen to a destination: a queue has one consumer a message. */
  static boolean isHeard(@Nullable Destination destination) {
    return destination instanceof Topic && !(destination instanceof jakarta.jms.TemporaryTopic);
  }
}
