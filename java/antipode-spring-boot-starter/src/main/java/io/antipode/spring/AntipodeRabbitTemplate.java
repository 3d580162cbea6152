package io.antipode.spring;

import com.rabbitmq.client.Channel;
import org.jspecify.annotations.Nullable;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessagePostProcessor;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitTemplate;

/**
 * A template whose messages carry the lineage, and enter the current scope once they are confirmed;
 * what it receives, replies too, is merged into that scope. Boot's own template is one; make one
 * where you make a template yourself.
 */
public class AntipodeRabbitTemplate extends RabbitTemplate {
  private final AntipodeRabbitChannels channels;

  /** Makes a template. */
  public AntipodeRabbitTemplate(
      ConnectionFactory connectionFactory, AntipodeRabbitChannels channels) {
    super(connectionFactory);
    this.channels = channels;
    super.setAfterReceivePostProcessors(channels::merged);
  }

  @Override
  public void setAfterReceivePostProcessors(MessagePostProcessor... processors) {
    super.setAfterReceivePostProcessors(processors);
    super.addAfterReceivePostProcessors(channels::merged);
  }

  /** Publishes on the instrumented channel, within the observation of Spring's. */
  @Override
  protected void sendToRabbit(
      Channel channel, String exchange, String routingKey, boolean mandatory, Message message) {
    super.sendToRabbit(channels.of(channel), exchange, routingKey, mandatory, message);
  }

  /** A reply may have been received by another thread: it is merged here. */
  @Override
  protected @Nullable Message doSendAndReceive(
      String exchange, String routingKey, Message message, @Nullable CorrelationData correlation) {
    Message reply = super.doSendAndReceive(exchange, routingKey, message, correlation);
    return reply == null ? null : channels.merged(reply);
  }
}
