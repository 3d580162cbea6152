package io.antipode.spring;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * What is said of ActiveMQ.
 *
 * @param datastore the name that every service gives to this broker; by default {@code activemq}
 */
@ConfigurationProperties("antipode.activemq")
public record AntipodeActiveMqProperties(@Nullable String datastore) {}
