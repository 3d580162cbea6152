package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.IncomingRequest;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.util.List;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/**
 * Runs each request of WebFlux in a scope of its own, in whatever threads, and answers with what it
 * added, also where its handler fails.
 */
public final class AntipodeWebFilter implements WebFilter, Ordered {
  /** Makes the filter. */
  public AntipodeWebFilter() {}

  @Override
  public int getOrder() {
    return Ordered.HIGHEST_PRECEDENCE + 10;
  }

  @Override
  public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
    return KillSwitch.isDisabled()
        ? chain.filter(exchange)
        : Mono.defer(() -> handled(exchange, chain));
  }

  private static Mono<Void> handled(ServerWebExchange exchange, WebFilterChain chain) {
    IncomingRequest begun = begin(exchange.getRequest());
    if (begun == null) {
      return chain.filter(exchange);
    }
    ServerHttpResponse response = exchange.getResponse();
    response.beforeCommit(() -> Mono.fromRunnable(() -> answer(begun, response)));
    try {
      return chain
          .filter(exchange)
          .contextWrite(context -> context.put(ScopeAccessor.KEY, begun.scope()))
          .doFinally(signal -> begun.close());
    } finally {
      begun.leave();
    }
  }

  private static @Nullable IncomingRequest begin(ServerHttpRequest request) {
    try {
      List<String> baggage = request.getHeaders().getOrDefault(Headers.BAGGAGE, List.of());
      boolean sent = request.getHeaders().containsKey(Headers.SENT);
      return IncomingRequest.begin(baggage, sent, request, carrier -> carrier == request);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is served without a scope", error);
      return null;
    }
  }

  private static void answer(IncomingRequest request, ServerHttpResponse response) {
    try {
      String answer = request.answer();
      if (answer != null) {
        response.getHeaders().set(Headers.LINEAGE, answer);
      }
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is answered without its lineage", error);
    }
  }
}
