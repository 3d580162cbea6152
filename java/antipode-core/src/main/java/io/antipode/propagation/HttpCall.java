package io.antipode.propagation;

import io.antipode.runtime.Counts;
import io.antipode.runtime.EgressHosts;
import io.antipode.runtime.KillSwitch;
import io.opentelemetry.context.Context;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * An HTTP request of a client, sent once or by several attempts, in the scope that it began in. It
 * never throws: a request of the application does not fail by this library.
 */
public final class HttpCall {
  /**
   * What says that nothing was executed: the request goes elsewhere, or was refused before any of
   * the service's code ran.
   */
  private static final Set<Integer> NOT_EXECUTED =
      Set.of(
          300, 301, 304, 305, 307, 308, 400, 401, 403, 404, 405, 406, 407, 410, 411, 413, 414, 415,
          416, 417, 421, 425, 426, 428, 429, 431, 451, 501, 505);

  private static final int REQUEST_TIMEOUT = 408;
  private static final Map<String, Integer> PORTS = Map.of("http", 80, "https", 443);

  /** Null where the library is disabled, or the call could not begin. */
  private final @Nullable OutgoingCall call;

  private HttpCall(@Nullable OutgoingCall call) {
    this.call = call;
  }

  /**
   * Begins a call in the current context.
   *
   * @param uri of the request
   * @param service the name of whom is called; null for the host, and the port where it is stated
   */
  public static HttpCall begin(URI uri, @Nullable String service) {
    String host = uri.getHost() == null ? "" : uri.getHost();
    return begin(
        Objects.requireNonNullElse(uri.getScheme(), "http"),
        host,
        uri.getPort(),
        Objects.requireNonNullElse(uri.getRawPath(), ""),
        service);
  }

  /**
   * Begins a call in the current context.
   *
   * @param scheme of the URL
   * @param host of the URL, as it is looked up
   * @param port of the URL; -1 for the scheme's
   * @param path of the URL, as it is sent, without a query
   * @param service the name of whom is called; null for the host, and the port where it is stated
   */
  public static HttpCall begin(
      String scheme, String host, int port, String path, @Nullable String service) {
    if (KillSwitch.isDisabled()) {
      return new HttpCall(null);
    }
    try {
      String known = scheme.toLowerCase(Locale.ROOT);
      int usual = PORTS.getOrDefault(known, EgressHosts.ANY_PORT);
      String name = spelled(host);
      String named = port < 0 || port == usual ? name : name + ":" + port;
      OutgoingCall.Target target =
          new OutgoingCall.Target(
              service == null ? named : service,
              host,
              port < 0 ? usual : port,
              known + "://" + named,
              path);
      return new HttpCall(OutgoingCall.begin(target));
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a call goes without a lineage", error);
      return new HttpCall(null);
    }
  }

  /** One spelling for each host: in lower case, and with an IPv6 address in brackets. */
  private static String spelled(String host) {
    String lower = host.toLowerCase(Locale.ROOT);
    return lower.indexOf(':') < 0 || lower.startsWith("[") ? lower : "[" + lower + "]";
  }

  /** Returns the context in which to send: whoever injects within it sends the same. */
  public Context sendingIn(Context context) {
    return call == null ? context : call.sendingIn(context);
  }

  /**
   * Lets headers carry the lineage, or nothing of ours where the host may not get it.
   *
   * @param headers of the request, which may be changed; their names in any case
   */
  public void outfit(Map<String, List<String>> headers) {
    harmless(
        outgoing -> {
          String header = Headers.joined(headers, Headers.BAGGAGE);
          String changed = outgoing.baggage(header);
          if (changed != null) {
            Headers.set(headers, Headers.BAGGAGE, changed);
            header = changed;
          }
          if (!outgoing.isAllowed()) {
            Headers.set(headers, Headers.SENT, "");
          } else if (Headers.hasMember(header)) {
            Headers.set(headers, Headers.SENT, "1");
          }
        });
  }

  /**
   * Says that an attempt was answered, by the service or by a proxy before it.
   *
   * @param status of the response
   * @param lineages its headers {@code antipode-lineage}; empty or null without one
   */
  public void answered(int status, @Nullable List<String> lineages) {
    harmless(
        outgoing -> {
          if (lineages != null && !lineages.isEmpty()) {
            for (String lineage : String.join(",", lineages).split(",", -1)) {
              outgoing.answered(lineage.strip(), true);
            }
          } else if (status >= 200 && status < 300) {
            outgoing.answered(null, true);
          } else if (!NOT_EXECUTED.contains(status)) {
            if (status == REQUEST_TIMEOUT || status >= 500) {
              outgoing.failed();
            } else {
              outgoing.answered(null, false);
            }
          }
        });
  }

  /** Says that an attempt was sent, or may have been, and that its answer was not learned. */
  public void failed() {
    harmless(OutgoingCall::failed);
  }

  private interface Step {
    void run(OutgoingCall outgoing);
  }

  private void harmless(Step step) {
    if (call == null) {
      return;
    }
    try {
      step.run(call);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "the lineage of a call is lost", error);
    }
  }
}
