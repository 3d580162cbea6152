package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.activemq.ActiveMqShim;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.Session;
import java.time.Duration;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.jspecify.annotations.Nullable;

/** A shim of ActiveMQ: messages, and the last one of each key. */
final class OpenActiveMq extends OpenMessages {
  /** What the broker has is on its way to the consumer. */
  private static final Duration LEAST = Duration.ofMillis(50);

  private final ActiveMqShim shim;
  private final String url;
  private final String topic;

  OpenActiveMq(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    url = Values.text(server, "url");
    topic = Values.text(server, "topic");
    ActiveMqShim.Builder builder =
        ActiveMqShim.builder(Values.text(given, "datastore"), url)
            .topic(topic)
            .queue(Values.text(server, "queue"));
    if (OpenShim.isReplica(given)) {
      builder.receipts();
    }
    shim = OpenShim.reading(builder, given).register();
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws Exception {
    return shim.write(key, value, lineage, fulfils);
  }

  @Override
  boolean receive() throws Exception {
    return shim.receive(LEAST, message -> keep(message.key(), message.value(), message.lineage()));
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) throws Exception {
    try (Connection connection = new ActiveMQConnectionFactory(url).createConnection();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
      Message message = session.createTextMessage(value);
      message.setJMSCorrelationID(key);
      ActiveMqShim.fulfil(message, fulfils);
      session.createProducer(session.createTopic(topic)).send(message);
      session.rollback();
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
