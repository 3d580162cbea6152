package io.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.OutgoingCall;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A server and a channel on the loopback. */
class InterceptorsTest {
  private static final WriteId CAME = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);
  private static final Incomplete IN_DOUBT = new Incomplete("test.Posts", "in_doubt");

  private static final MethodDescriptor<String, String> UNARY = method("unary", MethodType.UNARY);
  private static final MethodDescriptor<String, String> BIDI =
      method("bidi", MethodType.BIDI_STREAMING);
  private static final MethodDescriptor<String, String> STREAM =
      method("stream", MethodType.SERVER_STREAMING);

  private final AtomicReference<Lineage> seen = new AtomicReference<>(Lineage.empty());
  private final AtomicReference<Metadata> received = new AtomicReference<>();
  private Server server;
  private ManagedChannel channel;
  private Channel client;

  private static MethodDescriptor<String, String> method(String name, MethodType type) {
    return MethodDescriptor.<String, String>newBuilder(Text.MARSHALLER, Text.MARSHALLER)
        .setFullMethodName("test.Posts/" + name)
        .setType(type)
        .build();
  }

  private enum Text implements MethodDescriptor.Marshaller<String> {
    MARSHALLER;

    @Override
    public InputStream stream(String value) {
      return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String parse(InputStream stream) {
      try {
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  /** What the handlers do is what the request says. */
  private void handle(String request, StreamObserver<String> responses) {
    seen.set(Antipode.current());
    switch (request) {
      case "write" -> Antipode.append(ADDED);
      case "throw" -> {
        Antipode.append(ADDED);
        throw new IllegalStateException("of the handler");
      }
      case "refuse" -> {
        responses.onError(Status.UNIMPLEMENTED.asRuntimeException());
        return;
      }
      case "fail" -> {
        Antipode.append(ADDED);
        responses.onError(Status.UNAVAILABLE.withDescription("é".repeat(50)).asRuntimeException());
        return;
      }
      case "many" -> {
        for (int i = 0; i < 100; i++) {
          Antipode.append(WriteId.of("posts", "a-rather-long-key-" + i, i));
        }
      }
      default -> {}
    }
    responses.onNext("done");
    responses.onCompleted();
  }

  private StreamObserver<String> talk(StreamObserver<String> responses) {
    return new StreamObserver<>() {
      @Override
      public void onNext(String request) {
        Antipode.append(WriteId.of("users", request, 1).writtenAt(100));
        responses.onNext(Antipode.current().serialize());
      }

      @Override
      public void onError(Throwable error) {}

      @Override
      public void onCompleted() {
        responses.onCompleted();
      }
    };
  }

  private ServerServiceDefinition service() {
    return ServerServiceDefinition.builder("test.Posts")
        .addMethod(UNARY, ServerCalls.asyncUnaryCall(this::handle))
        .addMethod(STREAM, ServerCalls.asyncServerStreamingCall(this::handle))
        .addMethod(BIDI, ServerCalls.asyncBidiStreamingCall(this::talk))
        .build();
  }

  private static final class Recorder implements ServerInterceptor {
    private final AtomicReference<Metadata> received;

    Recorder(AtomicReference<Metadata> received) {
      this.received = received;
    }

    @Override
    public <Q, R> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
      received.set(headers);
      return next.startCall(call, headers);
    }
  }

  @BeforeEach
  void start() throws Exception {
    OutgoingCall.forgetPeers();
    server =
        NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
            .addService(service())
            .intercept(new AntipodeServerInterceptor())
            .intercept(new Recorder(received))
            .build()
            .start();
    channel =
        NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
            .usePlaintext()
            .intercept(new AntipodeClientInterceptor())
            .build();
    client = channel;
  }

  @AfterEach
  void stop() throws Exception {
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    server.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    Settings.configure(settings -> Settings.defaults());
    assertThat(Scope.currentOrNull()).isNull();
  }

  private String call(String request) {
    return ClientCalls.blockingUnaryCall(client, UNARY, CallOptions.DEFAULT, request);
  }

  @Test
  void aCallCarriesTheLineageAndItsAnswerBringsBackWhatWasAdded() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      assertThat(call("write")).isEqualTo("done");
      assertThat(seen.get()).isEqualTo(Lineage.of(CAME));
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED));
      assertThat(received.get().get(Entries.SENT)).isEqualTo("1");
    }
  }

  @Test
  void anErrorAnswersAsWellAlsoWhereTheHandlerThrows() {
    for (String request : List.of("throw", "fail")) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        assertThatThrownBy(() -> call(request)).isInstanceOf(StatusRuntimeException.class);
        assertThat(block.scope().leaving()).as(request).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void aStreamAnswersAtItsEnd() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      Iterator<String> responses =
          ClientCalls.blockingServerStreamingCall(client, STREAM, CallOptions.DEFAULT, "write");
      assertThat(block.scope().leaving().openBranches()).isEqualTo(1);
      assertThat(responses.next()).isEqualTo("done");
      assertThat(responses.hasNext()).isFalse();
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED));
    }
  }

  @Test
  void bothSidesOfAConversationAreInTheirScopes() throws Exception {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      CompletableFuture<Lineage> atEnd = new CompletableFuture<>();
      List<String> texts = new ArrayList<>();
      StreamObserver<String> requests =
          ClientCalls.asyncBidiStreamingCall(
              client.newCall(BIDI, CallOptions.DEFAULT),
              new StreamObserver<String>() {
                @Override
                public void onNext(String text) {
                  texts.add(text);
                }

                @Override
                public void onError(Throwable error) {
                  atEnd.completeExceptionally(error);
                }

                @Override
                public void onCompleted() {
                  atEnd.complete(Antipode.current());
                }
              });
      requests.onNext("one");
      requests.onNext("two");
      requests.onCompleted();
      Lineage both =
          Lineage.of(
              CAME,
              WriteId.of("users", "one", 1).writtenAt(100),
              WriteId.of("users", "two", 1).writtenAt(100));
      assertThat(atEnd.get(10, TimeUnit.SECONDS)).isEqualTo(both);
      assertThat(texts).hasSize(2).last().isEqualTo(both.serialize());
      assertThat(block.scope().leaving()).isEqualTo(both);
    }
  }

  @Test
  void whoSendsNoLineageNeedsNoAnswer() {
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    Channel watched =
        ClientInterceptors.intercept(
            channel,
            MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailers));
    ClientCalls.blockingUnaryCall(watched, UNARY, CallOptions.DEFAULT, "read");
    assertThat(trailers.get().containsKey(Entries.LINEAGE)).isFalse();
    ClientCalls.blockingUnaryCall(watched, UNARY, CallOptions.DEFAULT, "write");
    assertThat(trailers.get().get(Entries.LINEAGE)).isEqualTo(Lineage.of(ADDED).serialize());
  }

  @Test
  void aCallThatWasNotSentOrNotExecutedLeavesNoMark() throws Exception {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      ManagedChannel nobody =
          NettyChannelBuilder.forAddress("127.0.0.1", 1)
              .usePlaintext()
              .intercept(new AntipodeClientInterceptor())
              .build();
      assertThatThrownBy(
              () -> ClientCalls.blockingUnaryCall(nobody, UNARY, CallOptions.DEFAULT, "write"))
          .isInstanceOf(StatusRuntimeException.class);
      nobody.shutdownNow();
      MethodDescriptor<String, String> unknown = method("unknown", MethodType.UNARY);
      assertThatThrownBy(
              () -> ClientCalls.blockingUnaryCall(client, unknown, CallOptions.DEFAULT, ""))
          .isInstanceOf(StatusRuntimeException.class);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    }
  }

  @Test
  void aCallWhoseOutcomeIsNotLearnedIsInDoubt() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      ClientCall<String, String> call = client.newCall(BIDI, CallOptions.DEFAULT);
      CompletableFuture<Status> end = new CompletableFuture<>();
      call.start(
          new ClientCall.Listener<>() {
            @Override
            public void onMessage(String message) {
              call.cancel("the caller gives up", null);
            }

            @Override
            public void onClose(Status status, Metadata trailers) {
              end.complete(status);
            }
          },
          new Metadata());
      call.sendMessage("one");
      call.request(1);
      assertThat(end.join().getCode()).isEqualTo(Status.Code.CANCELLED);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME).marked(IN_DOUBT));
    }
  }

  @Test
  void anotherHostGetsNothingOfOurs() {
    Settings.configure(settings -> settings.withEgressHosts(Set.of("posts.internal")));
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      call("write");
      assertThat(seen.get()).isEqualTo(Lineage.empty());
      assertThat(received.get().containsKey(Entries.SENT)).isFalse();
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    }
    String here = "127.0.0.1:" + server.getPort();
    Settings.configure(settings -> settings.withEgressHosts(Set.of(here)));
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      call("read");
      assertThat(seen.get()).isEqualTo(Lineage.of(CAME));
    }
  }

  private static final class Adding implements ClientInterceptor {
    private final Metadata.Key<String> key;
    private final String value;

    Adding(String name, String value) {
      this.key = Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
      this.value = value;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          headers.put(key, value);
          super.start(listener, headers);
        }
      };
    }
  }

  @Test
  void theApplicationsBaggageStaysAndItsLineageIsMerged() {
    client =
        ClientInterceptors.intercept(
            channel,
            new Adding("baggage", "tenant=acme,antipode=" + Lineage.of(ADDED).serialize()));
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      call("read");
      assertThat(received.get().get(Entries.BAGGAGE))
          .isEqualTo("antipode=" + Lineage.of(CAME, ADDED).serialize() + ",tenant=acme");
      assertThat(seen.get()).isEqualTo(Lineage.of(CAME, ADDED));
    }
  }

  @Test
  void theAnswerOfARepeatedAttemptSaysThatEarlierOnesMayHaveWritten() {
    client = ClientInterceptors.intercept(channel, new Adding("grpc-previous-rpc-attempts", "1"));
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      call("write");
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED).marked(IN_DOUBT));
    }
  }

  @Test
  void noCallIsRefusedBecauseOfItsLineage() {
    Settings.configure(settings -> settings.withMaxLineageBytes(4_096));
    client = ClientInterceptors.intercept(channel, new Adding("x", "y".repeat(5_400)));
    try (ScopeBlock block = Antipode.scope()) {
      for (int i = 0; i < 100; i++) {
        Antipode.append(WriteId.of("posts", "a-rather-long-key-" + i, i));
      }
      assertThat(call("many")).isEqualTo("done");
      assertThat(seen.get().incomplete()).contains(new Incomplete("posts", "size"));
      assertThat(seen.get().writes()).isNotEmpty();
    }
  }
}
