package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.activemq.ActiveMqShim;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.Session;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.jspecify.annotations.Nullable;

/** A shim of ActiveMQ: messages, and the last one of each key. */
final class OpenActiveMq implements OpenShim {
  /** What the broker has is on its way to the consumer. */
  private static final Duration LEAST = Duration.ofMillis(50);

  private final ActiveMqShim shim;
  private final String url;
  private final String topic;
  private final Map<String, ActiveMqShim.Delivery> last = new HashMap<>();

  OpenActiveMq(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    url = Values.text(server, "url");
    topic = Values.text(server, "topic");
    ActiveMqShim.Builder builder =
        ActiveMqShim.builder(Values.text(given, "datastore"), url)
            .topic(topic)
            .queue(Values.text(server, "queue"));
    if (given.path("reads_from").asText().equals("replica")) {
      builder.readsFrom(ReadsFrom.REPLICA).receipts();
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    shim = builder.register();
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils)
      throws Exception {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    return shim.write(key, bytes, lineage == null ? Antipode.current() : lineage, fulfils);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) {
    throw AgentException.unsupported("the deletion of a published message");
  }

  @Override
  public synchronized Found read(String key) throws Exception {
    boolean isMore = true;
    while (isMore) {
      isMore = shim.receive(LEAST, message -> last.put(message.key(), message));
    }
    ActiveMqShim.Delivery found = last.get(key);
    if (found == null) {
      return new Found(null, Lineage.empty());
    }
    if (!found.lineage().isEmpty()) {
      Lineage ignored = Antipode.transfer(found.lineage());
    }
    return new Found(new String(found.value(), StandardCharsets.UTF_8), found.lineage());
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous consumer of ActiveMQ");
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
