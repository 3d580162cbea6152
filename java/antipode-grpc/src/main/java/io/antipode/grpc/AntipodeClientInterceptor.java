package io.antipode.grpc;

import io.antipode.propagation.Headers;
import io.antipode.propagation.OutgoingCall;
import io.antipode.runtime.Counts;
import io.antipode.runtime.EgressHosts;
import io.antipode.runtime.KillSwitch;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientStreamTracer;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.opentelemetry.context.Context;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/**
 * Sends the lineage of the current scope with each call, and merges what comes back in its trailers
 * before the caller learns of its end. Callbacks run in the context of the call.
 *
 * <pre>{@code
 * ManagedChannelBuilder.forTarget("dns:///users:50051").intercept(new AntipodeClientInterceptor())
 * }</pre>
 */
public final class AntipodeClientInterceptor implements ClientInterceptor {
  /** Codes that gRPC itself never makes up: with one of them the service has answered. */
  private static final Set<Status.Code> ANSWERED =
      EnumSet.of(
          Status.Code.OK,
          Status.Code.INVALID_ARGUMENT,
          Status.Code.NOT_FOUND,
          Status.Code.ALREADY_EXISTS,
          Status.Code.FAILED_PRECONDITION,
          Status.Code.ABORTED,
          Status.Code.OUT_OF_RANGE,
          Status.Code.DATA_LOSS);

  /** Codes that say that nothing was executed: gateways make them, too. */
  private static final Set<Status.Code> NOT_EXECUTED =
      EnumSet.of(
          Status.Code.UNIMPLEMENTED, Status.Code.UNAUTHENTICATED, Status.Code.PERMISSION_DENIED);

  /** Makes an interceptor. It may be shared by channels. */
  public AntipodeClientInterceptor() {}

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(
      MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    if (KillSwitch.isDisabled()) {
      return next.newCall(method, options);
    }
    Attempts attempts = new Attempts();
    Context context = Context.current();
    OutgoingCall call = begin(method, next, context);
    if (call == null) {
      return next.newCall(method, options);
    }
    // An instrumentation of OpenTelemetry that begins within sends what is sent here.
    try (io.opentelemetry.context.Scope entered = call.sendingIn(context).makeCurrent()) {
      return new Sending<>(
          next.newCall(method, options.withStreamTracerFactory(attempts)),
          new Outcome(call, attempts, context),
          method.getFullMethodName().length() + authority(next).length());
    }
  }

  private static @Nullable OutgoingCall begin(
      MethodDescriptor<?, ?> method, Channel channel, Context context) {
    try {
      String named = method.getServiceName();
      String service = named == null ? "" : named;
      String authority = authority(channel);
      return OutgoingCall.begin(
          new OutgoingCall.Target(
              service,
              authority,
              EgressHosts.ANY_PORT,
              authority + " " + service,
              "/" + method.getFullMethodName()),
          context);
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a call goes without a lineage", error);
      return null;
    }
  }

  private static String authority(Channel channel) {
    String authority = channel.authority();
    return authority == null ? "" : authority;
  }

  /** Counts the attempts of a call that were sent: gRPC sends one again by a retry policy. */
  private static final class Attempts extends ClientStreamTracer.Factory {
    private final AtomicInteger sent = new AtomicInteger();

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void outboundHeaders() {
          sent.incrementAndGet();
        }
      };
    }

    int sent() {
      return sent.get();
    }
  }

  /** What becomes of a call. */
  private static final class Outcome {
    private final OutgoingCall call;
    private final Attempts attempts;
    private final Context context;
    private final AtomicBoolean open = new AtomicBoolean();

    Outcome(OutgoingCall call, Attempts attempts, Context context) {
      this.call = call;
      this.attempts = attempts;
      this.context = context;
    }

    OutgoingCall call() {
      return call;
    }

    Context context() {
      return context;
    }

    /** The call goes on while its caller does, until its end is known. */
    void began() {
      open.set(true);
      call.began();
    }

    void finished() {
      if (open.compareAndSet(true, false)) {
        call.finished();
      }
    }

    void ended(Status status, @Nullable Metadata trailers) {
      finished();
      try {
        judge(status, trailers);
      } catch (RuntimeException error) {
        Counts.LOG.log(Level.WARNING, "the lineage of a call is lost", error);
        call.failed();
      }
    }

    private void judge(Status status, @Nullable Metadata trailers) {
      List<String> texts = Entries.values(trailers, Entries.LINEAGE);
      boolean sentOnce = attempts.sent() <= 1;
      if (!texts.isEmpty()) {
        texts.forEach(text -> call.answered(text, true));
      } else if (attempts.sent() == 0) {
        return; // Nobody got it.
      } else if (Entries.mayHaveLostAnswer(trailers)) {
        call.failed();
      } else if (ANSWERED.contains(status.getCode())) {
        call.answered(null, status.isOk());
      } else if (!(sentOnce && NOT_EXECUTED.contains(status.getCode()))) {
        call.failed();
      }
    }
  }

  /** A call that carries the lineage of the moment in which it is sent. */
  private static final class Sending<Q, R> extends SimpleForwardingClientCall<Q, R> {
    private final Outcome outcome;
    private final int fixed;

    Sending(ClientCall<Q, R> delegate, Outcome outcome, int fixed) {
      super(delegate);
      this.outcome = outcome;
      this.fixed = fixed;
    }

    @Override
    public void start(Listener<R> listener, Metadata headers) {
      try {
        outfit(headers);
      } catch (RuntimeException error) {
        Counts.LOG.log(Level.WARNING, "a call goes without a lineage", error);
      }
      outcome.began();
      Context sending = outcome.call().sendingIn(outcome.context());
      try (io.opentelemetry.context.Scope entered = sending.makeCurrent()) {
        super.start(new Listening<>(listener, outcome), headers);
      } catch (RuntimeException | Error error) {
        outcome.finished();
        throw error;
      }
    }

    private void outfit(Metadata headers) {
      OutgoingCall call = outcome.call();
      String given = Entries.joined(headers, Entries.BAGGAGE);
      String changed = call.baggage(given);
      String header = changed == null ? given : changed;
      if (!call.isAllowed()) {
        headers.removeAll(Entries.SENT);
      }
      if (changed != null) {
        Entries.set(headers, Entries.BAGGAGE, changed);
      }
      if (call.isAllowed() && header != null && Headers.hasMember(header)) {
        Entries.set(headers, Entries.BAGGAGE, fitting(headers, header));
        Entries.set(headers, Entries.SENT, "1");
      }
    }

    /** A header whose lineage fits with everything else that is sent. */
    private String fitting(Metadata headers, String header) {
      Metadata others = new Metadata();
      others.merge(headers);
      others.removeAll(Entries.SENT);
      String rest = Headers.withoutMember(header);
      Entries.set(others, Entries.BAGGAGE, rest);
      int room = Entries.requestRoom(others, fixed);
      List<String> texts = Headers.members(List.of(header));
      if (texts.size() == 1 && texts.get(0).length() <= room) {
        return header;
      }
      String whole = texts.size() == 1 ? texts.get(0) : OutgoingCall.together(texts);
      String text = Entries.fitting(whole, room);
      // Without the member, the entry that says it was sent informs the service of what is missing.
      return text == null ? rest : Headers.withMember(rest, text);
    }
  }

  /** Merges what came back before the caller learns of the end. */
  private static final class Listening<R> extends SimpleForwardingClientCallListener<R> {
    private final Outcome outcome;

    Listening(ClientCall.Listener<R> listener, Outcome outcome) {
      super(listener);
      this.outcome = outcome;
    }

    private void within(Runnable callback) {
      try (io.opentelemetry.context.Scope entered = outcome.context().makeCurrent()) {
        callback.run();
      }
    }

    @Override
    public void onHeaders(Metadata headers) {
      within(() -> super.onHeaders(headers));
    }

    @Override
    public void onMessage(R message) {
      within(() -> super.onMessage(message));
    }

    @Override
    public void onReady() {
      within(super::onReady);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      outcome.ended(status, trailers);
      within(() -> super.onClose(status, trailers));
    }
  }
}
