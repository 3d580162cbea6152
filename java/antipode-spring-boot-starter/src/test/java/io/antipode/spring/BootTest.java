package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.PeerAnswers;
import io.antipode.Settings;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.propagation.OutgoingCall;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.session.SessionCookie;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import jakarta.servlet.http.HttpServletRequest;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.ReactorClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.HttpServerErrorException;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** An application of Spring Boot on the loopback. */
class BootTest {
  private static final WriteId CAME = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);

  private static final Map<String, Supplier<ClientHttpRequestFactory>> FACTORIES =
      Map.of(
          "jdk", JdkClientHttpRequestFactory::new,
          "urlconnection", SimpleClientHttpRequestFactory::new,
          "reactor", ReactorClientHttpRequestFactory::new);

  private static ConfigurableApplicationContext application;
  private static String address;
  private static Settings before;

  @Configuration
  @EnableAutoConfiguration
  @EnableAsync
  static class Application {
    @Bean
    Service service() {
      return new Service();
    }

    @Bean
    Controller controller(Service service, RestClient.Builder clients) {
      return new Controller(service, clients);
    }
  }

  static class Service {
    @Async
    public CompletableFuture<Lineage> write() {
      return CompletableFuture.completedFuture(Antipode.append(ADDED));
    }
  }

  @RestController
  static class Controller {
    private final Service service;
    private final RestClient.Builder clients;
    private final RestClient client;

    Controller(Service service, RestClient.Builder clients) {
      this.service = service;
      this.clients = clients;
      this.client = clients.build();
    }

    @GetMapping("/read")
    String read() {
      return Antipode.current().serialize();
    }

    @GetMapping("/write")
    String write() {
      return Antipode.append(ADDED).serialize();
    }

    /** Writes in the present hour: what is old goes into no cookie. */
    @GetMapping("/save")
    String save(@RequestParam(defaultValue = "false") boolean fails) {
      Lineage held = Antipode.append(WriteId.of("users", "log", 9));
      if (fails) {
        throw new IllegalStateException("of the handler");
      }
      return held.serialize();
    }

    @GetMapping("/headers")
    List<String> headers(HttpServletRequest request) {
      return Collections.list(request.getHeaders(Headers.BAGGAGE));
    }

    /** Sends what was written after everything was extracted and copied, by a client. */
    @GetMapping("/send")
    List<?> send(HttpServletRequest request, @RequestParam String by) {
      Baggage tenant = Baggage.current().toBuilder().put("tenant", "seven").build();
      try (io.opentelemetry.context.Scope entered = tenant.makeCurrent()) {
        Antipode.append(ADDED);
        return clients
            .clone()
            .requestFactory(FACTORIES.get(by).get())
            .build()
            .get()
            .uri("http://127.0.0.1:" + request.getLocalPort() + "/headers")
            .retrieve()
            .body(List.class);
      }
    }

    @GetMapping("/relay")
    @Nullable String relay(HttpServletRequest request) {
      String uri = "http://127.0.0.1:" + request.getLocalPort() + "/write";
      client.get().uri(uri).retrieve().body(String.class);
      return Antipode.current().serialize();
    }

    @GetMapping("/async")
    String async() {
      service.write().join();
      return Antipode.current().serialize();
    }

    @GetMapping("/callable")
    Callable<String> callable() {
      return () -> Antipode.append(ADDED).serialize();
    }

    @GetMapping("/throw")
    String fail() {
      Antipode.append(ADDED);
      throw new IllegalStateException("of the handler");
    }

    @GetMapping("/stream")
    ResponseEntity<StreamingResponseBody> stream() {
      Antipode.append(ADDED);
      return ResponseEntity.ok(
          out -> {
            for (int i = 0; i < 100; i++) {
              out.write(new byte[1_000]);
              out.flush();
            }
          });
    }
  }

  @BeforeAll
  static void start() {
    before = Settings.current();
    application =
        new SpringApplication(Application.class)
            .run(
                "--server.port=0",
                "--server.address=127.0.0.1",
                "--spring.main.banner-mode=off",
                "--logging.level.root=error",
                "--antipode.max-timeout=2.5",
                "--antipode.region=eu",
                "--antipode.session.keys=a secret of this service",
                "--antipode.peers.[127.0.0.1/never]=never",
                "--antipode.on-unknown=raise");
    int port = ((ServletWebServerApplicationContext) application).getWebServer().getPort();
    address = "http://" + InetAddress.getLoopbackAddress().getHostAddress() + ":" + port;
  }

  @AfterAll
  static void stop() {
    application.close();
    Settings.configure(settings -> before);
  }

  @BeforeEach
  void forget() {
    OutgoingCall.forgetPeers();
    assertThat(Scope.currentOrNull()).isNull();
  }

  private static RestClient client() {
    return application.getBean(RestClient.Builder.class).baseUrl(address).build();
  }

  private static @Nullable Lineage get(String path) {
    String text = client().get().uri(path).retrieve().body(String.class);
    return text == null ? null : Lineage.deserialize(text);
  }

  @Test
  void propertiesAreSettings() {
    Settings settings = Settings.current();
    assertThat(settings.maxTimeout()).isEqualTo(Duration.ofMillis(2_500));
    assertThat(settings.region()).isEqualTo("eu");
    assertThat(settings.peers()).isEqualTo(Map.of("127.0.0.1/never", PeerAnswers.NEVER));
    assertThat(settings.maxLineageBytes()).as("not given").isEqualTo(1_024);
  }

  @Test
  void theNextRequestOfAUserStartsFromWhatTheLastOneWrote() {
    ResponseEntity<String> saved = visit("/save", "other=1");
    String cookie = saved.getHeaders().getFirst(HttpHeaders.SET_COOKIE);
    assertThat(cookie).startsWith("antipode=").endsWith("; Path=/; HttpOnly; SameSite=Lax");
    assertThat(saved.getHeaders().getCacheControl()).isEqualTo("private");
    ResponseEntity<String> read = visit("/read", cookie.substring(0, cookie.indexOf(';')));
    assertThat(read.getBody()).isEqualTo(saved.getBody());
    assertThat(read.getHeaders().get(HttpHeaders.SET_COOKIE)).as("it added nothing").isNull();
  }

  @Test
  void aPageStartsFromTheTokenOfAnEvent() {
    String token;
    try (ScopeBlock ignored = Antipode.scope(Lineage.of(WriteId.of("users", "log", 9)))) {
      token = application.getBean(SessionCookie.class).token();
    }
    ResponseEntity<String> read =
        client()
            .get()
            .uri("/read")
            .header(SessionCookie.TOKEN_HEADER, token)
            .retrieve()
            .toEntity(String.class);
    assertThat(read.getBody()).isEqualTo(Lineage.of(WriteId.of("users", "log", 9)).serialize());
    assertThat(read.getHeaders().get(HttpHeaders.SET_COOKIE)).as("it added nothing").isNull();
  }

  @Test
  void aForgedCookieIsIgnoredAndRemoved() {
    ResponseEntity<String> answer = visit("/read", "antipode=x:1~ka.5.k.forged");
    assertThat(Lineage.deserialize(answer.getBody())).isEqualTo(Lineage.empty());
    assertThat(answer.getHeaders().getFirst(HttpHeaders.SET_COOKIE))
        .startsWith("antipode=; Max-Age=0; ");
  }

  @Test
  void anErrorPageSetsTheCookieOnce() {
    List<String> cookies =
        client()
            .get()
            .uri("/save?fails=true")
            .exchange((request, response) -> response.getHeaders().get(HttpHeaders.SET_COOKIE));
    assertThat(cookies).hasSize(1);
  }

  private static ResponseEntity<String> visit(String path, String cookie) {
    return client()
        .get()
        .uri(path)
        .header(HttpHeaders.COOKIE, cookie)
        .retrieve()
        .toEntity(String.class);
  }

  @Test
  void aWrongPropertyKeepsTheApplicationFromStarting() {
    assertThatThrownBy(
            () ->
                new SpringApplication(Application.class)
                    .run("--server.port=0", "--logging.level.root=off", "--antipode.horizon=soon"))
        .rootCause()
        .hasMessageContaining("horizon must be like 7d, 12h or 3600, not soon");
  }

  @Test
  void aRequestHasTheLineageOfItsCaller() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      assertThat(get("/read")).isEqualTo(Lineage.of(CAME));
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    }
    assertThat(get("/read")).as("a scope of its own").isEqualTo(Lineage.empty());
  }

  @Test
  void anAnswerBringsBackWhatWasAdded() {
    for (String path : List.of("/write", "/relay", "/async", "/callable")) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        assertThat(get(path)).as(path).isEqualTo(Lineage.of(CAME, ADDED));
        assertThat(block.scope().leaving()).as(path).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void restTemplatesCarryItAsWell() {
    RestTemplate template = application.getBean(RestTemplateBuilder.class).build();
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      template.getForObject(address + "/write", String.class);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED));
    }
  }

  @Test
  void aClientSendsTheLineageOfTheMomentOnce() {
    for (String by : FACTORIES.keySet()) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        List<?> headers = client().get().uri("/send?by=" + by).retrieve().body(List.class);
        assertThat(headers).as(by).hasSize(1);
        String header = (String) headers.get(0);
        assertThat(header).as(by).contains("tenant=seven");
        assertThat(Headers.members(List.of(header)))
            .as(by)
            .map(Lineage::deserialize)
            .containsExactly(Lineage.of(CAME, ADDED));
        assertThat(block.scope().leaving()).as(by).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  /** The build runs these tests with the Java agent, with Boot's own tracing, and with neither. */
  @Test
  void theApplicationIsInstrumentedAsTheBuildSays() {
    boolean agent = Context.root().getClass().getName().contains("Agent");
    boolean tracing = application.containsBean("micrometerOtelTracer");
    assertThat(agent ? "agent" : tracing ? "tracing" : "nothing")
        .isEqualTo(System.getProperty("antipode.instrumented"));
  }

  @Test
  void anErrorAnswersAsWell() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      assertThatThrownBy(() -> get("/throw"))
          .isInstanceOf(HttpServerErrorException.InternalServerError.class);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED));
    }
  }

  @Test
  void aStreamAnswersAsItStarts() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      byte[] body = client().get().uri("/stream").retrieve().body(byte[].class);
      assertThat(body).hasSize(100_000);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME, ADDED));
    }
  }

  @Test
  void whoSendsNoLineageNeedsNoAnswer() throws Exception {
    HttpClient plain = HttpClient.newHttpClient();
    HttpRequest read = HttpRequest.newBuilder(URI.create(address + "/read")).build();
    HttpResponse<String> answer = plain.send(read, HttpResponse.BodyHandlers.ofString());
    assertThat(answer.headers().firstValue(Headers.LINEAGE)).isEmpty();
    HttpRequest sent =
        HttpRequest.newBuilder(URI.create(address + "/read")).header("antipode-sent", "1").build();
    HttpResponse<String> stripped = plain.send(sent, HttpResponse.BodyHandlers.ofString());
    assertThat(Lineage.deserialize(Objects.requireNonNull(stripped.body())).incomplete())
        .containsExactly(new Incomplete("baggage", "stripped"));
    assertThat(stripped.headers().firstValue(Headers.LINEAGE)).hasValue("1");
  }

  @Test
  void aCallThatWasNotSentLeavesNoMark() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      RestClient client = application.getBean(RestClient.Builder.class).build();
      assertThatThrownBy(
              () -> client.get().uri("http://127.0.0.1:1/").retrieve().body(String.class))
          .isInstanceOf(ResourceAccessException.class);
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    }
  }

  @Test
  void anotherHostGetsNothingOfOurs() {
    Settings held = Settings.configure(settings -> settings.withEgressHosts(Set.of("posts")));
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      assertThat(get("/write")).isEqualTo(Lineage.of(ADDED));
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    } finally {
      Settings.configure(settings -> held);
    }
  }
}
