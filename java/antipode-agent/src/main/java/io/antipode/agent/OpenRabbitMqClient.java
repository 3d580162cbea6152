package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.rabbitmq.RabbitMqInstrumentation;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** An instrumented channel: publications with confirms, and the next message of the queue. */
final class OpenRabbitMqClient extends OpenClient {
  private static final long CONFIRM_MS = 5_000;

  private final String datastore;
  private final String exchange;
  private final String queue;
  private final Connection connection;
  private final Channel channel;

  OpenRabbitMqClient(JsonNode given) throws Exception {
    JsonNode server = Values.argument(given, "server");
    datastore = Values.text(given, "datastore");
    exchange = Values.text(server, "exchange");
    queue = Values.text(server, "queue");
    connection =
        RabbitMqInstrumentation.of(datastore)
            .instrument(OpenRabbitMq.connection(Values.text(server, "url")));
    channel = connection.createChannel();
    channel.confirmSelect();
  }

  @Override
  public Shim shim() {
    return Shims.of(datastore).get(0);
  }

  @Override
  void put(String key, String value) throws Exception {
    channel.basicPublish(exchange, key, true, null, OpenBytes.bytes(value));
    channel.waitForConfirmsOrDie(CONFIRM_MS);
  }

  @Override
  void remove(String key) {
    throw AgentException.unsupported("the deletion of a published message");
  }

  @Override
  @Nullable String get(String key) throws Exception {
    GetResponse got = channel.basicGet(queue, true);
    return OpenBytes.text(got == null ? null : got.getBody());
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    throw AgentException.unsupported("an asynchronous consumer of RabbitMQ");
  }

  @Override
  public void close() {
    connection.abort();
  }
}
