package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import jakarta.jms.ConnectionFactory;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.command.ActiveMQTopic;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.support.converter.MessageConversionException;

/** Spring JMS over a broker of ActiveMQ, with each factory that Boot makes. */
@Tag("jms")
@Tag("slow")
class BootJmsTest {
  private static final WriteId CAUSE = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final String NEWS = "VirtualTopic.news";

  private static BrokerService broker;
  private static String url;

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    Listeners listeners(JmsTemplate template) {
      return new Listeners(template);
    }

    /** A container that the application makes itself. */
    @Bean
    DefaultMessageListenerContainer own(ConnectionFactory factory, Listeners listeners) {
      DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
      container.setConnectionFactory(factory);
      container.setDestinationName("own");
      container.setMessageListener(
          (jakarta.jms.MessageListener) message -> listeners.seen.add(Antipode.current()));
      return container;
    }
  }

  static class Listeners {
    final BlockingQueue<Lineage> seen = new ArrayBlockingQueue<>(10);
    private final JmsTemplate template;
    private boolean hasFailed;

    Listeners(JmsTemplate template) {
      this.template = template;
    }

    @JmsListener(destination = "Consumer.app.VirtualTopic.news")
    void handle(String text) {
      seen.add(Antipode.current());
    }

    /** Publishes in the transaction of its container, which fails the first time. */
    @JmsListener(destination = "orders")
    void relay(String order) {
      template.convertAndSend(new ActiveMQTopic(NEWS), order);
      if (!hasFailed) {
        hasFailed = true;
        throw new MessageConversionException("not yet");
      }
    }
  }

  @BeforeAll
  static void startBroker() throws Exception {
    broker = new BrokerService();
    broker.setPersistent(false);
    broker.setUseJmx(false);
    broker.addConnector("tcp://127.0.0.1:0");
    broker.start();
    url = broker.getTransportConnectors().get(0).getPublishableConnectString();
  }

  @AfterAll
  static void stopBroker() throws Exception {
    broker.stop();
  }

  private static ConfigurableApplicationContext start(String factory) {
    SpringApplication application = new SpringApplication(Application.class);
    application.setWebApplicationType(WebApplicationType.NONE);
    application.setDefaultProperties(
        Map.of(
            "spring.activemq.broker-url",
            url,
            "spring.activemq.pool.enabled",
            factory.equals("pool"),
            "spring.jms.cache.enabled",
            factory.equals("caching"),
            "spring.jms.listener.session.transacted",
            true,
            "spring.jms.template.session.transacted",
            true,
            "antipode.activemq.datastore",
            "news"));
    return application.run();
  }

  @ParameterizedTest
  @ValueSource(strings = {"caching", "pool", "plain"})
  void messagesCarryLineagesToListenersWithoutACall(String factory) throws Exception {
    try (ConfigurableApplicationContext application = start(factory)) {
      Class<?> type =
          switch (factory) {
            case "caching" -> CachingConnectionFactory.class;
            case "pool" -> JmsPoolConnectionFactory.class;
            default -> ActiveMQConnectionFactory.class;
          };
      assertThat(application.getBean(ConnectionFactory.class)).isInstanceOf(type);
      Listeners listeners = application.getBean(Listeners.class);
      JmsTemplate topics = new JmsTemplate(application.getBean(ConnectionFactory.class));
      topics.setPubSubDomain(true);
      Lineage sent;
      try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
        topics.convertAndSend(NEWS, "1");
        sent = Antipode.current();
        assertThat(sent.writes()).hasSize(2);
      }
      assertThat(listeners.seen.poll(20, TimeUnit.SECONDS)).isEqualTo(sent);
      try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
        application.getBean(JmsTemplate.class).convertAndSend("own", "1");
      }
      assertThat(listeners.seen.poll(20, TimeUnit.SECONDS).writes()).containsExactly(CAUSE);
    }
  }

  /** What a listener sends and its container rolls back is in no lineage, and not sent. */
  @Test
  void aListenersTransactionSendsOnceItIsCommitted() throws Exception {
    try (ConfigurableApplicationContext application = start("caching")) {
      Listeners listeners = application.getBean(Listeners.class);
      JmsTemplate template = application.getBean(JmsTemplate.class);
      try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
        template.convertAndSend("orders", "1");
      }
      Lineage relayed = listeners.seen.poll(20, TimeUnit.SECONDS);
      assertThat(relayed.writes()).hasSize(2).contains(CAUSE);
      try (ScopeBlock request = Antipode.scope()) {
        template.convertAndSend("own", "after all others");
      }
      assertThat(listeners.seen.poll(20, TimeUnit.SECONDS).writes()).isEmpty();
    }
  }
}
