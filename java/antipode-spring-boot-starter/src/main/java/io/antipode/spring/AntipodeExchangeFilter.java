package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.HttpCall;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.publisher.Mono;

/**
 * Sends the lineage with requests of {@code WebClient}, and merges what comes back. Boot's builder
 * has it; give it to clients that are made without that, last.
 *
 * <p>An instrumentation of OpenTelemetry sets the header after all filters, from the baggage that
 * is current then, or from a copy of an older one. So that of this call is current while it is
 * sent, and the lineage is put into the header last of all, as the request is written.
 */
public final class AntipodeExchangeFilter implements ExchangeFilterFunction {
  /** Makes a filter. It may be shared by clients. */
  public AntipodeExchangeFilter() {}

  @Override
  public Mono<ClientResponse> filter(ClientRequest request, ExchangeFunction next) {
    return KillSwitch.isDisabled()
        ? next.exchange(request)
        : Mono.deferContextual(view -> exchanged(request, next, ScopeAccessor.context(view)));
  }

  private static Mono<ClientResponse> exchanged(
      ClientRequest request, ExchangeFunction next, Context context) {
    HttpCall call;
    try (io.opentelemetry.context.Scope entered = context.makeCurrent()) {
      call = HttpCall.begin(request.url(), null);
    }
    AtomicBoolean over = new AtomicBoolean();
    return new SubscribedWithin<>(
            next.exchange(outfitted(request, call, context)), call.sendingIn(context))
        .doOnNext(
            response -> {
              if (over.compareAndSet(false, true)) {
                call.answered(
                    response.statusCode().value(), response.headers().header(Headers.LINEAGE));
              }
            })
        .doOnError(
            error -> {
              if (over.compareAndSet(false, true) && !isUnsent(error)) {
                call.failed();
              }
            })
        .doOnCancel(
            () -> {
              if (over.compareAndSet(false, true)) {
                call.failed();
              }
            });
  }

  private static ClientRequest outfitted(ClientRequest request, HttpCall call, Context context) {
    HttpHeaders headers = new HttpHeaders();
    headers.addAll(request.headers());
    if (!headers.containsKey(Headers.BAGGAGE)) {
      W3CBaggagePropagator.getInstance()
          .inject(
              call.sendingIn(context),
              headers,
              (into, name, value) -> Objects.requireNonNull(into).set(name, value));
    }
    call.outfit(headers);
    String baggage = joined(headers);
    List<String> texts = baggage == null ? List.of() : Headers.members(List.of(baggage));
    return ClientRequest.from(request)
        .headers(
            into -> {
              into.clear();
              into.addAll(headers);
            })
        .httpRequest(written -> finish(written.getHeaders(), call, texts))
        .build();
  }

  /** Puts the lineage in place of what an instrumentation has set since. */
  private static void finish(HttpHeaders headers, HttpCall call, List<String> texts) {
    if (texts.size() == 1) {
      headers.set(Headers.BAGGAGE, Headers.withMember(joined(headers), texts.get(0)));
    } else {
      call.outfit(headers);
    }
  }

  private static @Nullable String joined(HttpHeaders headers) {
    List<String> values = headers.get(Headers.BAGGAGE);
    return values == null ? null : String.join(",", values);
  }

  private static boolean isUnsent(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof ConnectException || each instanceof UnknownHostException) {
        return true;
      }
    }
    return false;
  }
}
