package io.antipode.activemq;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import jakarta.jms.JMSException;
import java.util.Map;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.jspecify.annotations.Nullable;

/** What the shim of ActiveMQ decides without a broker: next to what it is made of. */
public final class ActiveMqDecisions {
  private static final String DATASTORE = "posts";

  private ActiveMqDecisions() {}

  /** Returns whether publishing to a destination, as a frame of STOMP spells it, is a write. */
  public static boolean isWrite(String destination) {
    return MessageProperties.isHeard(destination(destination));
  }

  /** Returns what the consumer of a message depends on, by the headers of its frame. */
  public static Lineage found(Map<String, String> headers) throws JMSException {
    return MessageHeaders.received(MessageProperties.of(message(headers)), DATASTORE).lineage();
  }

  /**
   * Returns this library's properties of a message that is sent; null where they have no room.
   *
   * @param headers the application's, as those of a frame
   */
  public static @Nullable Map<String, Object> labelled(
      String destination, Map<String, String> headers, Lineage lineage, WriteId write)
      throws JMSException {
    ActiveMQMessage message = message(headers);
    MessageHeaders.Sent all =
        MessageHeaders.carrying(MessageProperties.of(message), write, lineage, DATASTORE);
    return MessageProperties.put(message, destination(destination), Map.of(), all) == null
        ? null
        : MessageProperties.of(message);
  }

  private static ActiveMQDestination destination(String inFrame) {
    String name = inFrame.substring(1).replaceFirst("/", "://");
    return ActiveMQDestination.createDestination(name, ActiveMQDestination.QUEUE_TYPE);
  }

  private static ActiveMQMessage message(Map<String, String> headers) throws JMSException {
    ActiveMQMessage message = new ActiveMQMessage();
    for (Map.Entry<String, String> each : headers.entrySet()) {
      switch (each.getKey()) {
        case "correlation-id" -> message.setJMSCorrelationID(each.getValue());
        case "reply-to" -> message.setJMSReplyTo(destination(each.getValue()));
        case "type" -> message.setJMSType(each.getValue());
        default -> message.setObjectProperty(each.getKey(), each.getValue());
      }
    }
    return message;
  }
}
