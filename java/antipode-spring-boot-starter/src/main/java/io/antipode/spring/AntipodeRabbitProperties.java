package io.antipode.spring;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What is said of RabbitMQ.
 *
 * @param datastore the name that every service gives to this broker; of messages that are published
 */
@ConfigurationProperties("antipode.rabbitmq")
public record AntipodeRabbitProperties(@DefaultValue("rabbitmq") String datastore) {}
