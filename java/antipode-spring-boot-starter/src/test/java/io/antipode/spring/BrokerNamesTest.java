package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.rabbitmq.RabbitMqInstrumentation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.amqp.rabbit.connection.AbstractConnectionFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** How the starter calls brokers. None is asked. */
class BrokerNamesTest {
  @RegisterExtension private final Logged logged = new Logged();

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeRabbitAutoConfiguration.class))
          .withBean("orders", ConnectionFactory.class, () -> at("broker", "/"))
          .withBean("mail", ConnectionFactory.class, () -> at("broker", "mail"))
          .withBean("other", ConnectionFactory.class, () -> at("else", "/"));

  private static AbstractConnectionFactory at(String host, String virtualHost) {
    CachingConnectionFactory connections = new CachingConnectionFactory(host);
    connections.setVirtualHost(virtualHost);
    connections.setAddresses(host);
    return connections;
  }

  private static final String RULES =
      "antipode.datastores=inbox=amqp://broker, mails=amqp://broker/mail?receipts=true";

  @Test
  void byTheirAddress() {
    application.withPropertyValues(RULES).run(context -> assertThat(context).hasNotFailed());
    assertThat(logged.text())
        .contains("instrumented: orders -> inbox; mail -> mails; other -> rabbitmq");
  }

  @Test
  void byTheirProperty() {
    application
        .withPropertyValues(RULES, "antipode.rabbitmq.datastore=queues")
        .run(context -> assertThat(context).hasNotFailed());
    assertThat(logged.text())
        .contains("instrumented: orders -> queues; mail -> queues; other -> queues");
  }

  @Test
  void aBeanOfTheApplicationsGoesBeforeRules() {
    application
        .withPropertyValues(RULES)
        .withBean(RabbitMqInstrumentation.class, () -> RabbitMqInstrumentation.of("own"))
        .run(
            context ->
                assertThat(context.getBean(RabbitMqInstrumentation.class).datastore())
                    .isEqualTo("own"));
    assertThat(logged.text()).doesNotContain("inbox");
  }
}
