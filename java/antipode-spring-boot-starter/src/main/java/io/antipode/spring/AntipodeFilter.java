package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.IncomingRequest;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.session.SessionCookie;
import io.antipode.session.SessionRequest;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Runs each request in a scope of its own, through its dispatches and in whatever threads, and
 * answers with what it added.
 */
public final class AntipodeFilter implements Filter {
  /** The dispatches that it is to be registered for. */
  static final EnumSet<DispatcherType> DISPATCHES =
      EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR);

  private static final String ATTRIBUTE = AntipodeFilter.class.getName();

  private final @Nullable SessionCookie session;

  /** What the dispatches of one request share. */
  private record Held(IncomingRequest request, @Nullable SessionRequest sessionRequest) {
    LineageResponse answering(HttpServletResponse response) {
      return new LineageResponse(response, request, sessionRequest);
    }
  }

  /** Makes a filter without a session cookie. */
  public AntipodeFilter() {
    this(null);
  }

  /** Makes a filter whose answers set a cookie, from which the next requests of a user start. */
  public AntipodeFilter(@Nullable SessionCookie session) {
    this.session = session;
  }

  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    if (KillSwitch.isDisabled()
        || !(request instanceof HttpServletRequest http)
        || !(response instanceof HttpServletResponse answer)) {
      chain.doFilter(request, response);
      return;
    }
    if (request.getAttribute(ATTRIBUTE) instanceof Held held) {
      again(held, request, answer, chain);
      return;
    }
    Held begun = begin(http);
    if (begun == null) {
      chain.doFilter(request, response);
    } else {
      begun(begun, http, begun.answering(answer), chain);
    }
  }

  /** Another dispatch of the same request. That to an error page makes a new response. */
  private static void again(
      Held held, ServletRequest request, HttpServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    try (io.opentelemetry.context.Scope entered = held.request.context().makeCurrent()) {
      if (request.getDispatcherType() == DispatcherType.ERROR) {
        LineageResponse answer = held.answering(response);
        chain.doFilter(request, answer);
        answer.start();
      } else {
        chain.doFilter(request, response);
      }
    }
  }

  private static void begun(
      Held begun, HttpServletRequest request, LineageResponse response, FilterChain chain)
      throws IOException, ServletException {
    request.setAttribute(ATTRIBUTE, begun);
    try {
      chain.doFilter(request, response);
    } finally {
      begun.request.leave();
      if (request.isAsyncStarted()) {
        request.getAsyncContext().addListener(new Ending(begun.request, response));
      } else {
        response.start();
        begun.request.close();
      }
    }
  }

  private @Nullable Held begin(HttpServletRequest request) {
    try {
      List<String> baggage = Collections.list(request.getHeaders(Headers.BAGGAGE));
      boolean sent = request.getHeader(Headers.SENT) != null;
      IncomingRequest begun =
          IncomingRequest.begin(
              baggage, sent, request, carrier -> unwrapped(carrier) == unwrapped(request));
      return new Held(begun, session == null ? null : sessionRequest(session, begun, request));
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is served without a scope", error);
      return null;
    }
  }

  private static @Nullable SessionRequest sessionRequest(
      SessionCookie session, IncomingRequest begun, HttpServletRequest request) {
    try {
      List<String> cookies = Collections.list(request.getHeaders("Cookie"));
      List<String> tokens = Collections.list(request.getHeaders(SessionCookie.TOKEN_HEADER));
      return session.begin(begun.scope(), cookies, tokens, request.isSecure());
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "the session cookie of a request cannot be read", error);
      return null;
    }
  }

  /** The container's own request, which filters before this one may have wrapped. */
  private static Object unwrapped(Object request) {
    Object found = request;
    while (found instanceof ServletRequestWrapper wrapper) {
      found = wrapper.getRequest();
    }
    return found;
  }

  /** Ends a request that went on after its first thread had left. */
  private static final class Ending implements AsyncListener {
    private final IncomingRequest request;
    private final LineageResponse response;

    Ending(IncomingRequest request, LineageResponse response) {
      this.request = request;
      this.response = response;
    }

    @Override
    public void onComplete(AsyncEvent event) {
      response.start();
      request.close();
    }

    @Override
    public void onTimeout(AsyncEvent event) {}

    @Override
    public void onError(AsyncEvent event) {}

    @Override
    public void onStartAsync(AsyncEvent event) {
      event.getAsyncContext().addListener(this);
    }
  }
}
