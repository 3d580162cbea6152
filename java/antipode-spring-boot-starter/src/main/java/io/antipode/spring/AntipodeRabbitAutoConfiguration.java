package io.antipode.spring;

import io.antipode.rabbitmq.RabbitMqInstrumentation;
import io.antipode.runtime.KillSwitch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.aopalliance.aop.Advice;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.rabbit.config.BaseRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.AbstractConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.amqp.RabbitAutoConfiguration;
import org.springframework.boot.autoconfigure.amqp.RabbitTemplateConfigurer;
import org.springframework.boot.autoconfigure.amqp.RabbitTemplateCustomizer;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** Lets messages of Spring AMQP carry lineages. Each bean backs off for one of yours. */
@AutoConfiguration(after = RabbitAutoConfiguration.class)
@ConditionalOnClass({RabbitTemplate.class, RabbitMqInstrumentation.class})
@Import(DatastoresConfiguration.class)
@EnableConfigurationProperties(AntipodeRabbitProperties.class)
public class AntipodeRabbitAutoConfiguration {
  private static final String TEMPLATE = "rabbitTemplate";

  /** Says how the broker is called, and whether readers have receipts. */
  @Bean(BrokerNames.DEFAULT)
  @ConditionalOnMissingBean
  RabbitMqInstrumentation antipodeRabbitMq(AntipodeRabbitProperties properties) {
    return RabbitMqInstrumentation.of(BrokerNames.named(properties.datastore()));
  }

  /** Instruments channels. */
  @Bean
  @ConditionalOnMissingBean
  AntipodeRabbitChannels antipodeRabbitChannels(
      RabbitMqInstrumentation instrumentation, Environment environment, ListableBeanFactory beans) {
    return new AntipodeRabbitChannels(
        instrumentation, new BrokerNames(environment, beans)::byAddress);
  }

  /** Gives messages of listeners a scope. */
  @Bean
  @ConditionalOnMissingBean
  AntipodeListenerAdvice antipodeListenerAdvice(AntipodeRabbitChannels channels) {
    return new AntipodeListenerAdvice(channels);
  }

  /** Puts a template that carries lineages in the place of Boot's. */
  @Bean
  static BeanDefinitionRegistryPostProcessor antipodeRabbitTemplate() {
    return AntipodeRabbitAutoConfiguration::replaceTemplate;
  }

  private static void replaceTemplate(BeanDefinitionRegistry registry) {
    if (KillSwitch.isDisabled()
        || !registry.containsBeanDefinition(TEMPLATE)
        || !isBoots(registry.getBeanDefinition(TEMPLATE))
        || !(registry instanceof BeanFactory beans)) {
      return;
    }
    registry.removeBeanDefinition(TEMPLATE);
    RootBeanDefinition ours =
        new RootBeanDefinition(AntipodeRabbitTemplate.class, () -> template(beans));
    registry.registerBeanDefinition(TEMPLATE, ours);
  }

  private static boolean isBoots(BeanDefinition definition) {
    @Nullable String factory = definition.getFactoryBeanName();
    return factory != null && factory.startsWith(RabbitAutoConfiguration.class.getName());
  }

  private static AntipodeRabbitTemplate template(BeanFactory beans) {
    ConnectionFactory connections = beans.getBean(ConnectionFactory.class);
    AntipodeRabbitTemplate template =
        new AntipodeRabbitTemplate(connections, beans.getBean(AntipodeRabbitChannels.class));
    beans.getBean(RabbitTemplateConfigurer.class).configure(template, connections);
    beans
        .getBeanProvider(RabbitTemplateCustomizer.class)
        .orderedStream()
        .forEach(customizer -> customizer.customize(template));
    return template;
  }

  /**
   * Instruments the channels of connections before anybody listens to their confirms, and advises
   * listeners next to their own code: what a retry or a recoverer outside of it sends is as the
   * message came.
   */
  @Bean
  static BeanPostProcessor antipodeRabbitBeans(
      Environment environment,
      ListableBeanFactory beans,
      ObjectProvider<AntipodeRabbitChannels> channels,
      ObjectProvider<AntipodeListenerAdvice> advice,
      ObjectProvider<InstrumentedBeans> report) {
    BrokerNames names = new BrokerNames(environment, beans);
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        if (KillSwitch.isDisabled()) {
          return bean;
        }
        if (bean instanceof AbstractConnectionFactory connections) {
          if (names.areKnown()) {
            report.getObject().instrumented(name, names.of(connections), null, null);
          }
          connections.addChannelListener(
              (channel, isTransactional) ->
                  Objects.requireNonNull(channels.getObject().of(channel, connections)));
        } else if (bean instanceof BaseRabbitListenerContainerFactory<?> containers) {
          containers.setAdviceChain(with(containers.getAdviceChain(), advice.getObject()));
        }
        return bean;
      }
    };
  }

  /** Instruments templates that the application defines itself. */
  @Bean
  static OwnRabbitTemplates antipodeRabbitTemplates(
      ObjectProvider<AntipodeRabbitChannels> channels, BeanFactory beans) {
    return new OwnRabbitTemplates(channels, beans);
  }

  private static Advice[] with(Advice @Nullable [] chain, Advice last) {
    List<Advice> all = new ArrayList<>(chain == null ? List.of() : Arrays.asList(chain));
    all.add(last);
    return all.toArray(Advice[]::new);
  }
}
