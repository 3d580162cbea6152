package io.antipode.grpc;

import io.antipode.lineage.LineageText;
import io.antipode.propagation.IncomingRequest;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.opentelemetry.context.Context;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Runs each call of a server in a scope of its own, and answers with what it added in the trailers,
 * whatever its status. Give it to the server last, so that it is outermost:
 *
 * <pre>{@code
 * builder.intercept(new AntipodeServerInterceptor())
 * }</pre>
 */
public final class AntipodeServerInterceptor implements ServerInterceptor {
  /** Makes an interceptor. It may be shared by servers. */
  public AntipodeServerInterceptor() {}

  @Override
  public <Q, R> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
    Serving<Q, R> serving = KillSwitch.isDisabled() ? null : begin(call, headers);
    return serving == null
        ? next.startCall(call, headers)
        : serving.listening(() -> next.startCall(serving, headers));
  }

  private static <Q, R> @Nullable Serving<Q, R> begin(ServerCall<Q, R> call, Metadata headers) {
    try {
      IncomingRequest request =
          IncomingRequest.begin(
              Entries.values(headers, Entries.BAGGAGE),
              headers.containsKey(Entries.SENT),
              headers,
              carrier -> carrier == headers);
      request.leave();
      return new Serving<>(call, request, headers.containsKey(Entries.ATTEMPTS));
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a call is served without a scope", error);
      return null;
    }
  }

  /** A call, whose trailers get the lineage. */
  private static final class Serving<Q, R> extends SimpleForwardingServerCall<Q, R> {
    private final IncomingRequest request;
    private final boolean repeated;
    private final AtomicBoolean closed = new AtomicBoolean();

    Serving(ServerCall<Q, R> call, IncomingRequest request, boolean repeated) {
      super(call);
      this.request = request;
      this.repeated = repeated;
    }

    Context context() {
      return request.context();
    }

    void end() {
      request.close();
    }

    @Override
    public void close(Status status, Metadata trailers) {
      if (closed.compareAndSet(false, true)) {
        try {
          answer(status, trailers);
        } catch (RuntimeException error) {
          Counts.LOG.log(Level.WARNING, "a call cannot be answered with its lineage", error);
        }
      }
      super.close(status, trailers);
    }

    private void answer(Status status, Metadata trailers) {
      Scope scope = request.scope();
      String service = service();
      // By hand, or by another of these interceptors: the last one speaks for all.
      for (String text : Entries.values(trailers, Entries.LINEAGE)) {
        scope.merge(LineageText.readable(service, text));
      }
      trailers.removeAll(Entries.LINEAGE);
      if (repeated) {
        // What the attempts before this one did is known to nobody.
        scope.markIncomplete(service, "in_doubt");
      }
      String answer = request.answer();
      if (answer != null) {
        String text =
            Entries.fitting(answer, Entries.trailingRoom(trailers, status.getDescription()));
        Entries.set(trailers, Entries.LINEAGE, text == null ? "" : text);
      }
    }

    private String service() {
      String service = getMethodDescriptor().getServiceName();
      return service == null ? "" : service;
    }

    /** gRPC would close the call of a handler that throws without our notice, without trailers. */
    void thrown() {
      if (!closed.get()) {
        close(Status.UNKNOWN.withDescription("Application error processing RPC"), new Metadata());
      }
      end();
    }

    ServerCall.Listener<Q> listening(Supplier<ServerCall.Listener<Q>> start) {
      try (io.opentelemetry.context.Scope entered = context().makeCurrent()) {
        return new Listening<>(start.get(), this);
      } catch (RuntimeException | Error error) {
        thrown();
        throw error;
      }
    }
  }

  /** Runs callbacks in the scope of the call. */
  private static final class Listening<Q> extends SimpleForwardingServerCallListener<Q> {
    private final Serving<Q, ?> serving;

    Listening(ServerCall.Listener<Q> listener, Serving<Q, ?> serving) {
      super(listener);
      this.serving = serving;
    }

    private void within(Runnable callback) {
      try (io.opentelemetry.context.Scope entered = serving.context().makeCurrent()) {
        callback.run();
      } catch (RuntimeException | Error error) {
        serving.thrown();
        throw error;
      }
    }

    @Override
    public void onMessage(Q message) {
      within(() -> super.onMessage(message));
    }

    @Override
    public void onHalfClose() {
      within(super::onHalfClose);
    }

    @Override
    public void onReady() {
      within(super::onReady);
    }

    @Override
    public void onComplete() {
      try {
        within(super::onComplete);
      } finally {
        serving.end();
      }
    }

    @Override
    public void onCancel() {
      try {
        within(super::onCancel);
      } finally {
        serving.end();
      }
    }
  }
}
