package socialgraph.user;

import io.grpc.Channel;
import io.grpc.ClientInterceptor;
import io.grpc.ManagedChannelBuilder;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The services that this one calls. */
@Configuration(proxyBeanMethods = false)
class Channels {
  @Bean
  Channel posts(
      @Value("${social-graph.compose-post}") String address,
      ObjectProvider<ClientInterceptor> interceptors) {
    List<ClientInterceptor> found = interceptors.orderedStream().toList();
    return ManagedChannelBuilder.forTarget(address).usePlaintext().intercept(found).build();
  }
}
