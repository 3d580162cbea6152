package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.IncomingRequest;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.session.SessionCookie;
import io.antipode.session.SessionRequest;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
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
  private final @Nullable SessionCookie session;

  /** What the parts of one request share. */
  private record Held(IncomingRequest request, @Nullable SessionRequest sessionRequest) {}

  /** Makes a filter without a session cookie. */
  public AntipodeWebFilter() {
    this(null);
  }

  /** Makes a filter whose answers set a cookie, from which the next requests of a user start. */
  public AntipodeWebFilter(@Nullable SessionCookie session) {
    this.session = session;
  }

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

  private Mono<Void> handled(ServerWebExchange exchange, WebFilterChain chain) {
    Held held = begin(exchange.getRequest());
    if (held == null) {
      return chain.filter(exchange);
    }
    IncomingRequest begun = held.request;
    ServerHttpResponse response = exchange.getResponse();
    response.beforeCommit(() -> Mono.fromRunnable(() -> answer(held, response)));
    try {
      return new SubscribedWithin<>(chain.filter(exchange), begun.context())
          .contextWrite(context -> context.put(ScopeAccessor.KEY, begun.scope()))
          .doFinally(signal -> begun.close());
    } finally {
      begun.leave();
    }
  }

  private @Nullable Held begin(ServerHttpRequest request) {
    try {
      List<String> baggage = request.getHeaders().getOrDefault(Headers.BAGGAGE, List.of());
      boolean sent = request.getHeaders().containsKey(Headers.SENT);
      IncomingRequest begun =
          IncomingRequest.begin(baggage, sent, request, carrier -> carrier == request);
      return new Held(begun, session == null ? null : sessionRequest(session, begun, request));
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is served without a scope", error);
      return null;
    }
  }

  private static @Nullable SessionRequest sessionRequest(
      SessionCookie session, IncomingRequest begun, ServerHttpRequest request) {
    try {
      List<String> cookies = request.getHeaders().getOrDefault(HttpHeaders.COOKIE, List.of());
      boolean onTls = "https".equals(request.getURI().getScheme());
      List<String> tokens =
          request.getHeaders().getOrDefault(SessionCookie.TOKEN_HEADER, List.of());
      return session.begin(begun.scope(), cookies, tokens, onTls);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "the session cookie of a request cannot be read", error);
      return null;
    }
  }

  private static void answer(Held held, ServerHttpResponse response) {
    try {
      String answer = held.request.answer();
      if (answer != null) {
        response.getHeaders().set(Headers.LINEAGE, answer);
      }
      if (held.sessionRequest != null) {
        setCookie(held.sessionRequest, response);
      }
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is answered without its lineage", error);
    }
  }

  /** The application's own cookies become headers only later, and are kept. */
  private static void setCookie(SessionRequest sessionRequest, ServerHttpResponse response) {
    HttpHeaders headers = response.getHeaders();
    Map<String, List<String>> all = new HashMap<>();
    headers.forEach((name, values) -> all.put(name.toLowerCase(Locale.ROOT), values));
    HttpStatusCode status = response.getStatusCode();
    SessionRequest.Change change =
        sessionRequest.change(status == null ? 200 : status.value(), all);
    if (change != null) {
      headers.set(HttpHeaders.CACHE_CONTROL, change.cacheControl());
      headers.add(HttpHeaders.SET_COOKIE, change.setCookie());
    }
  }
}
