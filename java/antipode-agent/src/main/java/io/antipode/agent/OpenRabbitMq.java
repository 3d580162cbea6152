package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.antipode.Antipode;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.rabbitmq.RabbitMqShim;
import io.antipode.rabbitmq.Receipts;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A shim of RabbitMQ: messages, and the last one of each routing key. */
final class OpenRabbitMq implements OpenShim {
  private final RabbitMqShim shim;
  private final String url;
  private final String exchange;
  private final String queue;
  private final Map<String, RabbitMqShim.Message> last = new HashMap<>();

  OpenRabbitMq(JsonNode given) {
    JsonNode server = Values.argument(given, "server");
    url = Values.text(server, "url");
    exchange = Values.text(server, "exchange");
    queue = Values.text(server, "queue");
    RabbitMqShim.Builder builder =
        RabbitMqShim.builder(Values.text(given, "datastore"), url)
            .exchange(exchange)
            .queue(queue)
            .mandatory();
    if (given.path("reads_from").asText().equals("replica")) {
      builder.readsFrom(ReadsFrom.REPLICA).receipts(Receipts.ofExchange());
    }
    if (given.path("on_read").asText().equals("ignore")) {
      builder.ignoringReads();
    }
    if (given.hasNonNull("timeout_s")) {
      builder.timeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    shim = builder.register();
  }

  /** Returns a connection of the application's own. */
  static Connection connection(String url) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(url);
    factory.setAutomaticRecoveryEnabled(false);
    return factory.newConnection("antipode agent");
  }

  String url() {
    return url;
  }

  String queue() {
    return queue;
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
      isMore = shim.receive(message -> last.put(message.key(), message));
    }
    RabbitMqShim.Message found = last.get(key);
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
    throw AgentException.unsupported("an asynchronous consumer of RabbitMQ");
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) throws Exception {
    try (Connection connection = connection(url);
        Channel channel = connection.createChannel()) {
      channel.txSelect();
      BasicProperties properties = RabbitMqShim.fulfilling(new BasicProperties(), fulfils);
      channel.basicPublish(exchange, key, properties, value.getBytes(StandardCharsets.UTF_8));
      channel.txRollback();
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
