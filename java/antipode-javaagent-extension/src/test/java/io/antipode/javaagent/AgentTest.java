package io.antipode.javaagent;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.propagation.OutgoingCall;
import io.antipode.request.ScopeBlock;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What plain clients send under the real agent with this extension: nothing else touches them. */
@Tag("agent")
class AgentTest {
  private static final WriteId CAME = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);

  private static final HttpClient JDK = HttpClient.newHttpClient();

  private static HttpServer server;
  private static URI address;
  private static volatile List<String> received = List.of();

  /** One request by a client. */
  private interface Sending {
    void send() throws Exception;
  }

  private static final Map<String, Sending> CLIENTS =
      Map.of(
          "jdk", () -> JDK.send(request(), HttpResponse.BodyHandlers.discarding()),
          "jdk, asynchronous",
              () -> JDK.sendAsync(request(), HttpResponse.BodyHandlers.discarding()).join(),
          "urlconnection", AgentTest::sendByConnection);

  private static HttpRequest request() {
    return HttpRequest.newBuilder(address).build();
  }

  private static void sendByConnection() throws IOException {
    HttpURLConnection connection = (HttpURLConnection) address.toURL().openConnection();
    assertThat(connection.getResponseCode()).isEqualTo(200);
  }

  @BeforeAll
  static void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/",
        exchange -> {
          received =
              new ArrayList<>(exchange.getRequestHeaders().getOrDefault("baggage", List.of()));
          exchange.sendResponseHeaders(200, -1);
          exchange.close();
        });
    server.start();
    address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
  }

  @AfterAll
  static void stop() {
    server.stop(0);
  }

  private static List<String> sent(Sending client) throws Exception {
    received = List.of("nothing came");
    client.send();
    return received;
  }

  private static void assertSent(String by, List<String> headers, Lineage lineage) {
    assertThat(headers).as(by).hasSize(1);
    assertThat(headers.get(0)).as(by).contains("tenant=seven").doesNotContain("antipode-scope");
    assertThat(Headers.members(headers)).as(by).map(Lineage::deserialize).containsExactly(lineage);
  }

  private static Context tenant() {
    return Baggage.current().toBuilder()
        .put("tenant", "seven")
        .build()
        .storeInContext(Context.current());
  }

  @Test
  void theLineageOfTheMomentIsSentOnceThoughTheContextWasCopiedBefore() throws Exception {
    for (var client : CLIENTS.entrySet()) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME));
          io.opentelemetry.context.Scope entered = tenant().makeCurrent()) {
        Antipode.append(ADDED);
        assertSent(client.getKey(), sent(client.getValue()), Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void itIsThatOfTheContextInWhateverThread() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(2);
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME));
        io.opentelemetry.context.Scope entered = tenant().makeCurrent()) {
      CompletableFuture<Void> later = new CompletableFuture<>();
      var sent =
          pool.submit(
              () -> {
                later.join();
                return sent(CLIENTS.get("jdk"));
              });
      Antipode.append(ADDED);
      later.complete(null);
      assertSent("a pool", sent.get(), Lineage.of(CAME, ADDED));
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void whatAnInterceptorOfOursRenderedIsSentAsItIs() throws Exception {
    for (var client : CLIENTS.entrySet()) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME));
          io.opentelemetry.context.Scope entered = tenant().makeCurrent()) {
        OutgoingCall call =
            OutgoingCall.begin(new OutgoingCall.Target("it", "127.0.0.1", -1, "it", "/"));
        try (io.opentelemetry.context.Scope sending =
            call.sendingIn(Context.current()).makeCurrent()) {
          assertSent(client.getKey(), sent(client.getValue()), Lineage.of(CAME));
        }
      }
    }
  }

  @Test
  void nothingIsSentWhereTheBaggageWasClearedOrTheScopeStopped() throws Exception {
    for (var client : CLIENTS.entrySet()) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        Context cleared = Baggage.empty().storeInContext(Context.current());
        try (io.opentelemetry.context.Scope entered = cleared.makeCurrent()) {
          assertThat(sent(client.getValue())).as(client.getKey()).isEmpty();
        }
        Antipode.stop();
        assertThat(Headers.members(sent(client.getValue()))).as(client.getKey()).isEmpty();
      }
    }
  }
}
