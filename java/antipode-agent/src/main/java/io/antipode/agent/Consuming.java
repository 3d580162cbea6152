package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import io.antipode.Antipode;
import io.antipode.rabbitmq.ConsumerOptions;
import io.antipode.rabbitmq.RabbitMqConsumer;
import io.antipode.runtime.Counts;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;

/** A consumer of RabbitMQ, until it has done with so many messages. */
final class Consuming {
  private static final Duration SLICE = Duration.ofMillis(20);

  private Consuming() {}

  static JsonNode run(OpenRabbitMq broker, JsonNode request) throws Exception {
    String datastore = broker.shim().datastore();
    long deferred = count("message_deferred", datastore) + request.path("deferrals").asLong();
    long dead = count("message_dead_lettered", datastore) + request.path("dead").asLong();
    int handled = request.path("messages").asInt();
    long end =
        System.nanoTime()
            + Configuration.duration(Values.argument(request, "timeout_s").asDouble()).toNanos();
    ArrayNode messages = JsonNodeFactory.instance.arrayNode();
    try (Connection connection = OpenRabbitMq.connection(request.path("url").asText(broker.url()));
        RabbitMqConsumer consumer =
            new RabbitMqConsumer(
                connection.createChannel(),
                options(broker.queue(), datastore, request),
                message -> messages.add(json(message)))) {
      while (messages.size() < handled
          || count("message_deferred", datastore) < deferred
          || count("message_dead_lettered", datastore) < dead) {
        if (System.nanoTime() > end) {
          break;
        }
        boolean ignored = consumer.runFor(SLICE);
      }
    }
    return messages;
  }

  private static long count(String name, String datastore) {
    return Counts.all().getOrDefault(new Counts.Metric(name, datastore), 0L);
  }

  private static ConsumerOptions options(String queue, String datastore, JsonNode request) {
    ConsumerOptions options = ConsumerOptions.of(queue, datastore);
    JsonNode delay = request.path("delay_s");
    if (delay.isArray()) {
      options =
          options.withDelay(
              Configuration.duration(delay.get(0).asDouble()),
              Configuration.duration(delay.get(1).asDouble()));
    }
    if (request.hasNonNull("wait_s")) {
      options = options.waiting(Configuration.duration(request.get("wait_s").asDouble()));
    }
    if (request.hasNonNull("max_attempts")) {
      options = options.withMaxAttempts(request.get("max_attempts").asInt());
    }
    if (request.hasNonNull("dead_letter")) {
      options = options.withDeadLetter(Values.text(request, "dead_letter"));
    }
    return options;
  }

  private static ObjectNode json(Delivery message) {
    ObjectNode value = JsonNodeFactory.instance.objectNode();
    value.put("value", new String(message.getBody(), StandardCharsets.UTF_8));
    value.put("exchange", message.getEnvelope().getExchange());
    value.put("key", message.getEnvelope().getRoutingKey());
    value.put("expiration", message.getProperties().getExpiration());
    ObjectNode headers = value.putObject("headers");
    Map<String, Object> given = message.getProperties().getHeaders();
    if (given != null) {
      given.forEach((name, each) -> headers.put(name, String.valueOf(each)));
    }
    return value.put("lineage", Antipode.current().serialize());
  }
}
