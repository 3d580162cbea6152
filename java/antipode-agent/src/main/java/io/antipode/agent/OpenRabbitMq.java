package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.antipode.barrier.Shim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.rabbitmq.RabbitMqShim;
import io.antipode.rabbitmq.Receipts;
import org.jspecify.annotations.Nullable;

/** A shim of RabbitMQ: messages, and the last one of each routing key. */
final class OpenRabbitMq extends OpenMessages {
  private final RabbitMqShim shim;
  private final String url;
  private final String exchange;
  private final String queue;

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
    if (OpenShim.isReplica(given)) {
      builder.receipts(Receipts.ofExchange());
    }
    if (given.hasNonNull("timeout_s")) {
      builder.timeout(Configuration.duration(given.get("timeout_s").asDouble()));
    }
    shim = OpenShim.reading(builder, given).register();
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
  Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws Exception {
    return shim.write(key, value, lineage, fulfils);
  }

  @Override
  boolean receive() throws Exception {
    return shim.receive(message -> keep(message.key(), message.value(), message.lineage()));
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) throws Exception {
    try (Connection connection = connection(url);
        Channel channel = connection.createChannel()) {
      channel.txSelect();
      BasicProperties properties = RabbitMqShim.fulfilling(new BasicProperties(), fulfils);
      channel.basicPublish(exchange, key, properties, bytes(value));
      channel.txRollback();
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
