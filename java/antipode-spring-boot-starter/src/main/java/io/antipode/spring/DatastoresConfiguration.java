package io.antipode.spring;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;

/** What the instrumentations of stores share. */
@Configuration(proxyBeanMethods = false)
class DatastoresConfiguration {
  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  static InstrumentedBeans antipodeInstrumentedBeans() {
    return new InstrumentedBeans();
  }

  @Bean
  static R2dbcWarning antipodeR2dbcWarning(Environment environment) {
    return new R2dbcWarning(environment);
  }
}
