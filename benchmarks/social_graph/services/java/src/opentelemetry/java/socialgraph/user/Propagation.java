package socialgraph.user;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** OpenTelemetry's own propagation: a trace's ids and baggage go with each call. */
@Configuration(proxyBeanMethods = false)
class Propagation {
  private static final TextMapPropagator BOTH =
      TextMapPropagator.composite(
          W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance());

  @Bean
  ServerInterceptor contextReceived() {
    return new Serving();
  }

  @Bean
  ClientInterceptor contextSent() {
    return new Calling();
  }

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  private static final class Getter implements TextMapGetter<Metadata> {
    @Override
    public Iterable<String> keys(Metadata headers) {
      return headers.keys();
    }

    @Override
    public String get(Metadata headers, String name) {
      return headers.get(key(name));
    }
  }

  private static final class Serving implements ServerInterceptor {
    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      Context context = BOTH.extract(Context.root(), headers, new Getter());
      return new SimpleForwardingServerCallListener<>(next.startCall(call, headers)) {
        @Override
        public void onHalfClose() { // A call with one request is handled in it.
          try (Scope entered = context.makeCurrent()) {
            super.onHalfClose();
          }
        }
      };
    }
  }

  private static final class Calling implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      Context context = Context.current();
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          BOTH.inject(context, headers, (into, name, value) -> into.put(key(name), value));
          super.start(listener, headers);
        }
      };
    }
  }
}
