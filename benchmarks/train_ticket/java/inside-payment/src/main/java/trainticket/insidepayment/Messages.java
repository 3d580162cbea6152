package trainticket.insidepayment;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.support.converter.Jackson2JavaTypeMapper.TypePrecedence;
import org.springframework.amqp.support.converter.Jackson2JsonMessageConverter;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Messages are JSON, of the type that the listener takes; their queues outlive the broker. */
@Configuration(proxyBeanMethods = false)
class Messages {
  @Bean
  Jackson2JsonMessageConverter converter(ObjectMapper json) {
    Jackson2JsonMessageConverter converter = new Jackson2JsonMessageConverter(json);
    converter.setTypePrecedence(TypePrecedence.INFERRED);
    return converter;
  }

  @Bean
  Queue refundsQueue(@Value("${train-ticket.refunds-queue}") String name) {
    return new Queue(name);
  }

  @Bean
  Queue notificationsQueue(@Value("${train-ticket.notifications-queue}") String name) {
    return new Queue(name);
  }
}
