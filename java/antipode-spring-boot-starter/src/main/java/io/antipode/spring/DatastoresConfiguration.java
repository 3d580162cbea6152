package io.antipode.spring;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;

/** What the instrumentations of stores share. */
@Configuration(proxyBeanMethods = false)
class DatastoresConfiguration {
  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  static InstrumentedBeans antipodeInstrumentedBeans() {
    return new InstrumentedBeans();
  }
}
