package trainticket.cancel;

import org.springframework.amqp.core.Queue;
import org.springframework.amqp.support.converter.Jackson2JsonMessageConverter;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Messages are JSON, and their queue outlives the broker. */
@Configuration(proxyBeanMethods = false)
class Messages {
  @Bean
  Jackson2JsonMessageConverter converter() {
    return new Jackson2JsonMessageConverter();
  }

  @Bean
  Queue refundsQueue(@Value("${train-ticket.refunds-queue}") String name) {
    return new Queue(name);
  }
}
