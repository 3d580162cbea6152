package io.antipode.spring;

import com.rabbitmq.client.Channel;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessagePostProcessor;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.util.ReflectionUtils;

/**
 * A template whose messages carry the lineage, and enter the current scope once they are confirmed;
 * what it receives, replies too, is merged into that scope. Boot's own template is one, and each
 * bean of the class {@link RabbitTemplate} becomes one; extend this class where you extend that.
 */
public class AntipodeRabbitTemplate extends RabbitTemplate {
  private final AntipodeRabbitChannels channels;

  /** Makes a template. */
  public AntipodeRabbitTemplate(
      ConnectionFactory connectionFactory, AntipodeRabbitChannels channels) {
    super(connectionFactory);
    this.channels = channels;
    super.setAfterReceivePostProcessors(this::merged);
  }

  /** Makes a template that is set up as another one is, which is not used any more. */
  static AntipodeRabbitTemplate like(
      RabbitTemplate template, AntipodeRabbitChannels channels, BeanFactory beans) {
    AntipodeRabbitTemplate made =
        new AntipodeRabbitTemplate(template.getConnectionFactory(), channels);
    ReflectionUtils.shallowCopyFieldState(template, made);
    ReflectionUtils.doWithLocalFields(
        RabbitTemplate.class, field -> copyEntries(field, template, made));
    made.setBeanFactory(beans);
    made.addAfterReceivePostProcessors(made::merged);
    return made;
  }

  /** Copies what a field holds that cannot be set, such as arguments of its consumers. */
  @SuppressWarnings("unchecked") // Both are the same field's.
  private static void copyEntries(Field field, RabbitTemplate from, RabbitTemplate to)
      throws IllegalAccessException {
    int modifiers = field.getModifiers();
    if (!Modifier.isStatic(modifiers)
        && Modifier.isFinal(modifiers)
        && Map.class.isAssignableFrom(field.getType())) {
      field.setAccessible(true);
      ((Map<Object, Object>) field.get(to)).putAll((Map<Object, Object>) field.get(from));
    }
  }

  @Override
  public void setAfterReceivePostProcessors(MessagePostProcessor... processors) {
    super.setAfterReceivePostProcessors(processors);
    super.addAfterReceivePostProcessors(this::merged);
  }

  /** Publishes on the instrumented channel, within the observation of Spring's. */
  @Override
  protected void sendToRabbit(
      Channel channel, String exchange, String routingKey, boolean mandatory, Message message) {
    super.sendToRabbit(
        channels.of(channel, getConnectionFactory()), exchange, routingKey, mandatory, message);
  }

  /** A reply may have been received by another thread: it is merged here. */
  @Override
  protected @Nullable Message doSendAndReceive(
      String exchange, String routingKey, Message message, @Nullable CorrelationData correlation) {
    Message reply = super.doSendAndReceive(exchange, routingKey, message, correlation);
    return reply == null ? null : merged(reply);
  }

  private Message merged(Message message) {
    return channels.merged(message, getConnectionFactory());
  }
}
