package io.antipode.activemq;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.activemq.util.JMSExceptionSupport;
import org.jspecify.annotations.Nullable;

/** Messages and their bodies. */
final class Bodies {
  private Bodies() {}

  /**
   * Returns the message that a producer of a context makes of a body.
   *
   * @param type of the method's parameter, which says what an absent body is
   */
  static @Nullable Message message(JMSContext context, Class<?> type, @Nullable Object body) {
    try {
      if (type == String.class) {
        return context.createTextMessage((String) body);
      }
      if (type == Map.class) {
        return message(context, (Map<?, ?>) body);
      }
      if (type == byte[].class) {
        return message(context, (byte @Nullable []) body);
      }
      return type == Serializable.class
          ? context.createObjectMessage((Serializable) body)
          : (Message) body;
    } catch (JMSException error) {
      throw JMSExceptionSupport.convertToJMSRuntimeException(error);
    }
  }

  private static Message message(JMSContext context, @Nullable Map<?, ?> body) throws JMSException {
    MapMessage message = context.createMapMessage();
    for (Map.Entry<?, ?> each : (body == null ? Map.of() : body).entrySet()) {
      message.setObject(String.valueOf(each.getKey()), each.getValue());
    }
    return message;
  }

  private static Message message(JMSContext context, byte @Nullable [] body) throws JMSException {
    BytesMessage message = context.createBytesMessage();
    if (body != null) {
      message.writeBytes(body);
    }
    return message;
  }

  /** Returns a message's body as bytes: a text's in UTF-8, as STOMP has it; none of others. */
  static byte[] bytes(Message message) throws JMSException {
    if (message instanceof BytesMessage bytes) {
      byte[] body = new byte[(int) bytes.getBodyLength()];
      int ignored = bytes.readBytes(body);
      return body;
    }
    String text = message instanceof TextMessage given ? given.getText() : null;
    return text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
  }
}
