package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.HttpCall;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Objects;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/**
 * Sends the lineage with requests of {@code RestClient} and {@code RestTemplate}, and merges what
 * comes back. Boot's builders have it; give it to clients that are made without them, last.
 *
 * <p>The header has the complete baggage, and the same is current while the request is sent: an
 * instrumentation of OpenTelemetry within sends the same, whichever of the two wins.
 */
public final class AntipodeClientInterceptor implements ClientHttpRequestInterceptor {
  /** Makes an interceptor. It may be shared by clients. */
  public AntipodeClientInterceptor() {}

  @Override
  public ClientHttpResponse intercept(
      HttpRequest request, byte[] body, ClientHttpRequestExecution execution) throws IOException {
    if (KillSwitch.isDisabled()) {
      return execution.execute(request, body);
    }
    HttpCall call = HttpCall.begin(request.getURI(), null);
    Context sending = call.sendingIn(Context.current());
    HttpHeaders headers = request.getHeaders();
    if (!headers.containsKey(Headers.BAGGAGE)) {
      W3CBaggagePropagator.getInstance()
          .inject(
              sending,
              headers,
              (into, name, value) -> Objects.requireNonNull(into).set(name, value));
    }
    call.outfit(headers);
    try (io.opentelemetry.context.Scope entered = sending.makeCurrent()) {
      return answered(call, execution.execute(request, body));
    } catch (ConnectException | UnknownHostException notSent) {
      throw notSent;
    } catch (IOException | RuntimeException error) {
      call.failed();
      throw error;
    }
  }

  private static ClientHttpResponse answered(HttpCall call, ClientHttpResponse response)
      throws IOException {
    List<String> lineages = response.getHeaders().get(Headers.LINEAGE);
    call.answered(response.getStatusCode().value(), lineages);
    return response;
  }
}
