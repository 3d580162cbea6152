package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.impl.Method;
import io.antipode.messages.MessageHeaders;
import java.io.IOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The frame that the properties of a message have to fit in. The client counts a message before it
 * finds out that it cannot send it, and the broker does not: so it is found out before that.
 *
 * @param bytes of its connection's frames; 0 for any number
 */
record Frame(int bytes) {
  static Frame of(Channel channel) {
    return new Frame(channel.getConnection().getFrameMax());
  }

  /**
   * Throws as the client does for a message that it cannot send, of which nothing was sent then.
   *
   * @throws IllegalArgumentException if a text has over 255 bytes, a header is of no type that AMQP
   *     has, or the properties do not fit
   */
  void requireSendable(String exchange, String key, BasicProperties properties) throws IOException {
    AMQP.Basic.Publish method =
        new AMQP.Basic.Publish.Builder().exchange(exchange).routingKey(key).build();
    Object ignored = ((Method) method).toFrame(0);
    int size = size(properties);
    if (size > most()) {
      throw new IllegalArgumentException(
          "the properties of the message have " + size + " bytes, and its frame " + bytes);
    }
  }

  /**
   * Returns what of our headers fits beside the application's: the lineage is cut, with its mark.
   *
   * @return null where nothing of it fits
   */
  MessageHeaders.@Nullable Sent fitting(BasicProperties properties, MessageHeaders.Sent sent)
      throws IOException {
    int excess = size(properties, sent.headers()) - most();
    return excess <= 0 ? sent : sent.shortened(excess);
  }

  private int most() {
    return bytes == 0 ? Integer.MAX_VALUE : bytes;
  }

  private static int size(BasicProperties properties, @Nullable Map<String, Object> headers)
      throws IOException {
    return size(properties.builder().headers(headers).build());
  }

  private static int size(BasicProperties properties) throws IOException {
    return properties.toFrame(0, 0).size();
  }
}
