package io.antipode.spring;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * What is said of RabbitMQ.
 *
 * @param datastore the name that every service gives to this broker; of messages that are
 *     published; by default as {@code antipode.datastores} names the broker's address, else {@code
 *     rabbitmq}
 */
@ConfigurationProperties("antipode.rabbitmq")
public record AntipodeRabbitProperties(@Nullable String datastore) {}
