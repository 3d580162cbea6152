import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.antipode.rabbitmq.RabbitMqInstrumentation;
import io.antipode.rabbitmq.RabbitMqShim;
import java.nio.charset.StandardCharsets;

/** RabbitMQ's own client: a publication with its confirm. */
final class RabbitMqCalls {
  private static final long CONFIRM_MS = 20_000;
  private static final byte[] BODY = "value".getBytes(StandardCharsets.UTF_8);

  private RabbitMqCalls() {}

  static void count(String url) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(url);
    try (Connection connection = factory.newConnection();
        Channel plain = connection.createChannel()) {
      String queue = plain.queueDeclare().getQueue();
      plain.confirmSelect();
      try (RabbitMqShim shim = RabbitMqShim.builder("posts", url).register();
          Connection instrumented =
              RabbitMqInstrumentation.of("posts").instrument(factory.newConnection());
          Channel ours = instrumented.createChannel()) {
        ours.confirmSelect();
        Counting.compare(
            "RabbitMQ: publish",
            "amqp-client",
            Counting.release("com.rabbitmq/amqp-client"),
            () -> publish(ours, queue),
            () -> publish(plain, queue));
      }
    }
  }

  private static void publish(Channel channel, String queue) throws Exception {
    channel.basicPublish("", queue, true, null, BODY);
    channel.waitForConfirmsOrDie(CONFIRM_MS);
  }
}
