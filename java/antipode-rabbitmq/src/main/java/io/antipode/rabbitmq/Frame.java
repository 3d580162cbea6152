package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.impl.Method;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.lineage.LineageTooLargeException;
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
  /** Counts in a bound of a lineage's text, and not in a header. */
  private static final int MEMBER_BYTES = "antipode=".length();

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
    if (size(properties, sent.headers()) <= most()) {
      return sent;
    }
    String text = sent.text();
    if (text == null) {
      return null;
    }
    int room = most() - size(properties, sent.carrying("").headers());
    String cut = room < 0 ? null : cut(text, room);
    return cut == null ? null : sent.carrying(cut);
  }

  private static @Nullable String cut(String text, int room) {
    try {
      return LineageText.leaving(Lineage.deserialize(text), room + MEMBER_BYTES);
    } catch (LineageTooLargeException error) {
      return null;
    }
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
