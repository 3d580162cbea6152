package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.activemq.ActiveMqInstrumentation;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.CompletableFuture;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.jspecify.annotations.Nullable;

/** An instrumented connection: persistent messages to a topic, and the next one of a queue. */
final class OpenActiveMqClient extends OpenClient {
  private static final long LEAST_MS = 50;

  private final String datastore;
  private final Connection connection;
  private final Session session;
  private final MessageProducer producer;
  private final MessageConsumer consumer;

  OpenActiveMqClient(JsonNode given) throws Exception {
    JsonNode server = Values.argument(given, "server");
    datastore = Values.text(given, "datastore");
    connection =
        ActiveMqInstrumentation.of(datastore)
            .instrument(new ActiveMQConnectionFactory(Values.text(server, "url")))
            .createConnection();
    connection.start();
    session = connection.createSession();
    producer = session.createProducer(session.createTopic(Values.text(server, "topic")));
    consumer = session.createConsumer(session.createQueue(Values.text(server, "queue")));
  }

  @Override
  public Shim shim() {
    return Shims.of(datastore).get(0);
  }

  @Override
  void put(String key, String value) throws Exception {
    TextMessage message = session.createTextMessage(value);
    message.setJMSCorrelationID(key);
    producer.send(message);
  }

  @Override
  void remove(String key) {
    throw AgentException.unsupported("the deletion of a published message");
  }

  @Override
  @Nullable String get(String key) throws Exception {
    return consumer.receive(LEAST_MS) instanceof TextMessage text ? text.getText() : null;
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous consumer of ActiveMQ");
  }

  @Override
  public void close() {
    try {
      connection.close();
    } catch (JMSException error) {
      // It was dead.
    }
  }
}
