package io.antipode.activemq;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Publications;
import io.antipode.request.Recording;
import jakarta.jms.BytesMessage;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.Map;
import org.apache.activemq.command.ActiveMQMessage;
import org.jspecify.annotations.Nullable;

/** Publishes one persistent message after the other, each confirmed. Thread-safe. */
final class Publisher {
  private final Link link;
  private final String datastore;
  private final Publications publications;
  private @Nullable Session opened;
  private @Nullable MessageProducer producer;

  Publisher(ConnectionFactory broker, String datastore) {
    this.link = new Link(broker, Session.AUTO_ACKNOWLEDGE);
    this.datastore = datastore;
    this.publications = new Publications(datastore, false);
  }

  /**
   * Publishes, and returns the write once the broker has it; it enters the current scope.
   *
   * @param headers the application's
   * @throws JMSException if the broker does not have it; where it may, the scope is marked
   */
  synchronized WriteId publish(
      String topic,
      String key,
      byte[] value,
      @Nullable Map<String, Object> headers,
      Lineage lineage)
      throws JMSException {
    Session session = link.session();
    if (session != opened) {
      publications.endAll();
      opened = session;
      producer = null;
    }
    WriteId write = publications.next(topic, "");
    try {
      Topic destination = session.createTopic(topic);
      BytesMessage given = session.createBytesMessage();
      given.setJMSCorrelationID(key);
      given.writeBytes(value);
      ActiveMQMessage message = MessageProperties.copy(given);
      MessageHeaders.Sent all = MessageHeaders.carrying(headers, write, lineage, datastore);
      MessageHeaders.Sent sent = MessageProperties.put(message, destination, Map.of(), all);
      if (sent == null) {
        throw new IllegalArgumentException("the message leaves its lineage no room");
      }
      try (io.opentelemetry.context.Scope sending = sent.context().makeCurrent()) {
        producer(session).send(destination, message);
      }
    } catch (JMSException | RuntimeException error) {
      publications.end(write);
      link.close();
      if (!Failures.isUnsent(error)) {
        Recording.markIncomplete(datastore, "in_doubt");
      }
      throw error;
    }
    Recording.recordWrite(write);
    return write;
  }

  private MessageProducer producer(Session session) throws JMSException {
    MessageProducer held = producer;
    if (held == null) {
      held = session.createProducer(null);
      producer = held;
    }
    return held;
  }

  void close() {
    link.close();
  }
}
