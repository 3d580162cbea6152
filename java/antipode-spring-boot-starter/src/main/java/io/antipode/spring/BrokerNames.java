package io.antipode.spring;

import com.rabbitmq.client.Address;
import io.antipode.rabbitmq.RabbitMqInstrumentation;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.rabbit.connection.AbstractConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.core.env.Environment;
import org.springframework.util.ConcurrentReferenceHashMap;

/**
 * How brokers are called: as {@code antipode.rabbitmq.datastore} or a bean of the application's
 * says, else as a rule names their address, else {@code rabbitmq}.
 */
final class BrokerNames {
  /** The bean that says it where the application has none. */
  static final String DEFAULT = "antipodeRabbitMq";

  private static final String PROPERTY = "antipode.rabbitmq.datastore";

  private final @Nullable String given;
  private final DatastoreRules rules;
  private final ListableBeanFactory beans;
  private final Map<ConnectionFactory, Optional<RabbitMqInstrumentation>> found =
      new ConcurrentReferenceHashMap<>();

  BrokerNames(Environment environment, ListableBeanFactory beans) {
    this.given = environment.getProperty(PROPERTY);
    this.rules = DatastoreRules.of(environment);
    this.beans = beans;
  }

  static String named(@Nullable String datastore) {
    return datastore == null ? "rabbitmq" : datastore;
  }

  /** Returns whether no bean of the application's says it. */
  boolean areKnown() {
    return beans.containsBeanDefinition(DEFAULT);
  }

  /** Returns the name of a broker, where names are known. */
  String of(AbstractConnectionFactory connections) {
    DatastoreRule rule = given == null ? rule(connections) : null;
    return rule == null ? named(given) : rule.datastore();
  }

  /** Returns what a rule says of connections; null for nothing. */
  @Nullable RabbitMqInstrumentation byAddress(ConnectionFactory connections) {
    return found.computeIfAbsent(connections, this::made).orElse(null);
  }

  private Optional<RabbitMqInstrumentation> made(ConnectionFactory connections) {
    DatastoreRule rule =
        given == null && areKnown() && connections instanceof AbstractConnectionFactory known
            ? rule(known)
            : null;
    if (rule == null) {
      return Optional.empty();
    }
    RabbitMqInstrumentation made = RabbitMqInstrumentation.of(rule.datastore());
    return Optional.of(rule.receipts() ? made.withReceipts() : made);
  }

  private @Nullable DatastoreRule rule(AbstractConnectionFactory connections) {
    return rules.find(Store.RABBITMQ, places(connections), connections.getVirtualHost());
  }

  private static List<Place> places(AbstractConnectionFactory connections) {
    Object several = new DirectFieldAccessor(connections).getPropertyValue("addresses");
    if (several instanceof List<?> given && !given.isEmpty()) { // They have no getter.
      return given.stream()
          .map(Address.class::cast)
          .map(each -> Place.of(each.getHost(), port(each, connections)))
          .toList();
    }
    return List.of(Place.of(connections.getHost(), connections.getPort()));
  }

  private static int port(Address address, AbstractConnectionFactory connections) {
    return address.getPort() < 0 ? connections.getPort() : address.getPort();
  }
}
