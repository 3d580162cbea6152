package io.antipode.spring;

import io.antipode.activemq.ActiveMqInstrumentation;
import io.antipode.runtime.KillSwitch;
import jakarta.jms.ConnectionFactory;
import java.util.Objects;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jms.config.AbstractJmsListenerContainerFactory;
import org.springframework.jms.listener.AbstractMessageListenerContainer;

/** Lets messages of Spring JMS over ActiveMQ carry lineages. It backs off for a bean of yours. */
@AutoConfiguration
@ConditionalOnClass({AbstractMessageListenerContainer.class, ActiveMqInstrumentation.class})
@Import(DatastoresConfiguration.class)
@EnableConfigurationProperties(AntipodeActiveMqProperties.class)
public class AntipodeActiveMqAutoConfiguration {
  /** Says how the broker is called, and whether readers have receipts. */
  @Bean
  @ConditionalOnMissingBean
  ActiveMqInstrumentation antipodeActiveMq(AntipodeActiveMqProperties properties) {
    return ActiveMqInstrumentation.of(
        Objects.requireNonNullElse(properties.datastore(), "activemq"));
  }

  /** Instruments factories of connections, and gives messages of listeners a scope. */
  @Bean
  static BeanPostProcessor antipodeActiveMqBeans(
      ObjectProvider<ActiveMqInstrumentation> instrumentation,
      ObjectProvider<InstrumentedBeans> report) {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessBeforeInitialization(Object bean, String name) {
        if (bean instanceof AbstractMessageListenerContainer container
            && !KillSwitch.isDisabled()) {
          JmsListeners.scope(container, instrumentation.getObject());
        }
        return bean;
      }

      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        if (KillSwitch.isDisabled()) {
          return bean;
        }
        if (bean instanceof AbstractJmsListenerContainerFactory<?> containers) {
          return JmsListeners.scoping(containers, instrumentation.getObject());
        }
        return bean instanceof ConnectionFactory factory
            ? instrumented(factory, name, instrumentation.getObject(), report.getObject())
            : bean;
      }
    };
  }

  private static Object instrumented(
      ConnectionFactory factory,
      String name,
      ActiveMqInstrumentation instrumentation,
      InstrumentedBeans report) {
    JmsFactories factories = new JmsFactories(instrumentation);
    ConnectionFactory found = factories.bean(factory);
    if (factories.isInstrumented(found)) {
      report.instrumented(name, instrumentation.datastore(), null, null);
    } else {
      report.notInstrumented(name, "no factory of ActiveMQ's, nor a pool of one");
    }
    return found;
  }
}
