package io.antipode.spring;

import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.DestructionAwareBeanPostProcessor;

/**
 * Puts a template that carries lineages in the place of each that the application defines. One of a
 * class that extends Spring's stays, and is logged: nobody else can make one.
 */
final class OwnRabbitTemplates implements DestructionAwareBeanPostProcessor {
  private final ObjectProvider<AntipodeRabbitChannels> channels;
  private final BeanFactory beans;

  /** Ours by theirs, which Spring destroys. */
  private final Map<Object, RabbitTemplate> made =
      Collections.synchronizedMap(new IdentityHashMap<>());

  OwnRabbitTemplates(ObjectProvider<AntipodeRabbitChannels> channels, BeanFactory beans) {
    this.channels = channels;
    this.beans = beans;
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof RabbitTemplate template)
        || bean instanceof AntipodeRabbitTemplate
        || KillSwitch.isDisabled()) {
      return bean;
    }
    AntipodeRabbitTemplate ours = like(template, name);
    if (ours == null) {
      return bean;
    }
    made.put(bean, ours);
    return ours;
  }

  private @Nullable AntipodeRabbitTemplate like(RabbitTemplate template, String name) {
    if (template.getClass() != RabbitTemplate.class) {
      uninstrumented(name, "let its class extend AntipodeRabbitTemplate");
      return null;
    }
    try {
      return AntipodeRabbitTemplate.like(template, channels.getObject(), beans);
    } catch (IllegalStateException | IllegalArgumentException error) { // As modules may have it.
      uninstrumented(name, "make it an AntipodeRabbitTemplate (" + error.getMessage() + ")");
      return null;
    }
  }

  private static void uninstrumented(String name, String what) {
    Counts.logOnce("template", "", name, () -> "the bean " + name + " sends no lineages: " + what);
  }

  @Override
  public boolean requiresDestruction(Object bean) {
    return made.containsKey(bean);
  }

  @Override
  public void postProcessBeforeDestruction(Object bean, String name) {
    RabbitTemplate ours = made.remove(bean);
    if (ours != null) {
      ours.destroy();
    }
  }
}
