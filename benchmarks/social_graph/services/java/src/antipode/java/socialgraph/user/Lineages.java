package socialgraph.user;

import io.antipode.grpc.AntipodeClientInterceptor;
import io.antipode.grpc.AntipodeServerInterceptor;
import io.grpc.ClientInterceptor;
import io.grpc.ServerInterceptor;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Carries lineages with calls: what the library adds to this service, beside its dependencies. */
@Configuration(proxyBeanMethods = false)
class Lineages {
  @Bean
  ServerInterceptor lineagesReceived() {
    return new AntipodeServerInterceptor();
  }

  @Bean
  ClientInterceptor lineagesSent() {
    return new AntipodeClientInterceptor();
  }
}
