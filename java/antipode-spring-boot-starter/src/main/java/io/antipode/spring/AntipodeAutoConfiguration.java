package io.antipode.spring;

import io.antipode.Antipode;
import io.antipode.propagation.AntipodePropagator;
import io.antipode.runtime.KillSwitch;
import io.antipode.session.SessionCookie;
import io.opentelemetry.context.propagation.ContextPropagators;
import java.util.List;
import java.util.Objects;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.aop.support.annotation.AnnotationMatchingPointcut;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.task.TaskExecutionAutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.web.client.RestClientCustomizer;
import org.springframework.boot.web.client.RestTemplateCustomizer;
import org.springframework.boot.web.reactive.function.client.WebClientCustomizer;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.task.TaskDecorator;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Hooks;

/** Sets up the library in a Spring Boot application. Each bean backs off for one of yours. */
@AutoConfiguration(before = TaskExecutionAutoConfiguration.class)
@EnableConfigurationProperties(AntipodeProperties.class)
public class AntipodeAutoConfiguration implements SmartInitializingSingleton, DisposableBean {
  private final ContextSettings settings;

  /** Puts the properties in force, until the context is closed. */
  public AntipodeAutoConfiguration(AntipodeProperties properties) {
    this.settings = ContextSettings.open(properties::applied);
  }

  /** Properties are in force from the start also where beans are made as they are needed. */
  @Bean
  static LazyInitializationExcludeFilter antipodeSettings() {
    return LazyInitializationExcludeFilter.forBeanTypes(AntipodeAutoConfiguration.class);
  }

  @Override
  public void afterSingletonsInstantiated() {
    settings.started();
  }

  @Override
  public void destroy() {
    settings.close();
  }

  /**
   * Runs tasks of {@code @Async} methods and of Boot's executors in the scope that they were given
   * in. An application that has a decorator of its own calls {@link Antipode#decorate} in it.
   */
  @Bean
  @ConditionalOnMissingBean(TaskDecorator.class)
  TaskDecorator antipodeTaskDecorator() {
    return KillSwitch.isDisabled() ? task -> task : Antipode::decorate;
  }

  /**
   * Lets Boot's own tracing send the lineage of the moment, where it sends baggage: it asks its
   * propagators, which no customizer of the SDK has seen.
   */
  @Bean
  static BeanPostProcessor antipodeContextPropagators() {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        return bean instanceof ContextPropagators propagators
                && AntipodePropagator.carriesBaggage(propagators.getTextMapPropagator())
            ? ContextPropagators.create(AntipodePropagator.wrap(propagators.getTextMapPropagator()))
            : bean;
      }
    };
  }

  /** Lets methods with {@link Barrier} wait, before the transactions that they open. */
  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  static DefaultPointcutAdvisor antipodeBarrierAdvisor() {
    DefaultPointcutAdvisor advisor =
        new DefaultPointcutAdvisor(
            AnnotationMatchingPointcut.forMethodAnnotation(Barrier.class),
            new BarrierInterceptor());
    advisor.setOrder(Ordered.LOWEST_PRECEDENCE - 100);
    return advisor;
  }

  /** The cookie of a service's users, which makes the tokens of its events, too. */
  @Bean
  @ConditionalOnMissingBean
  @Conditional(HasSessionKeys.class)
  SessionCookie antipodeSessionCookie(AntipodeProperties properties) {
    return Objects.requireNonNull(properties.session()).made();
  }

  /** Whether there are keys, in whichever form a list of properties has. */
  static final class HasSessionKeys implements Condition {
    @Override
    public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
      Bindable<List<String>> keys = Bindable.listOf(String.class);
      return Binder.get(context.getEnvironment()).bind("antipode.session.keys", keys).isBound();
    }
  }

  /** Gives each request a scope. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
  static class Servlets {
    @Bean
    @ConditionalOnMissingBean(AntipodeFilter.class)
    FilterRegistrationBean<AntipodeFilter> antipodeFilter(ObjectProvider<SessionCookie> session) {
      FilterRegistrationBean<AntipodeFilter> filter =
          new FilterRegistrationBean<>(new AntipodeFilter(session.getIfAvailable()));
      filter.setOrder(Ordered.HIGHEST_PRECEDENCE + 10);
      filter.setDispatcherTypes(AntipodeFilter.DISPATCHES);
      filter.setAsyncSupported(true);
      filter.setEnabled(!KillSwitch.isDisabled());
      return filter;
    }
  }

  /** Gives each request of WebFlux a scope. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
  static class Reactive {
    @Bean
    @ConditionalOnMissingBean
    AntipodeWebFilter antipodeWebFilter(ObjectProvider<SessionCookie> session) {
      return new AntipodeWebFilter(session.getIfAvailable());
    }
  }

  /** Lets scopes follow Reactor, and what else knows Micrometer's context, between threads. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(Hooks.class)
  static class Threads {
    Threads() {
      if (!KillSwitch.isDisabled()) {
        ScopeAccessor.register();
        ScopedSubscriber.install();
      }
    }
  }

  /** Sends the lineage with calls of {@code WebClient}. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(WebClient.class)
  static class ReactiveClients {
    @Bean
    @ConditionalOnMissingBean
    AntipodeExchangeFilter antipodeExchangeFilter() {
      return new AntipodeExchangeFilter();
    }

    @Bean
    WebClientCustomizer antipodeWebClientCustomizer(AntipodeExchangeFilter filter) {
      return builder -> builder.filter(filter);
    }
  }

  /** Sends the lineage with calls of Spring's synchronous clients. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(RestClient.class)
  static class Clients {
    @Bean
    @ConditionalOnMissingBean
    AntipodeClientInterceptor antipodeClientInterceptor() {
      return new AntipodeClientInterceptor();
    }

    @Bean
    RestClientCustomizer antipodeRestClientCustomizer(AntipodeClientInterceptor interceptor) {
      return builder -> builder.requestInterceptor(interceptor);
    }

    @Bean
    RestTemplateCustomizer antipodeRestTemplateCustomizer(AntipodeClientInterceptor interceptor) {
      return template -> template.getInterceptors().add(interceptor);
    }
  }
}
