package io.antipode.spring;

import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/**
 * Gives the application's registries, to which Boot's actuator binds them, the library's meters.
 */
@AutoConfiguration(
    afterName =
        "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration")
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean(MeterRegistry.class)
public class AntipodeMetricsAutoConfiguration {
  /** Makes it. */
  public AntipodeMetricsAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  AntipodeMeters antipodeMeters() {
    return new AntipodeMeters();
  }
}
