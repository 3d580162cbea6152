package io.antipode.spring;

import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Says in {@code /actuator/health} where barriers wait; {@code antipode} is its name there. */
@AutoConfiguration
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnEnabledHealthIndicator("antipode")
public class AntipodeHealthAutoConfiguration {
  /** Makes it. */
  public AntipodeHealthAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  AntipodeHealthIndicator antipodeHealthIndicator() {
    return new AntipodeHealthIndicator();
  }
}
