package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.propagation.OutgoingCall;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.session.SessionCookie;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.embedded.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.reactive.context.ReactiveWebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseCookie;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.reactive.ClientHttpConnector;
import org.springframework.http.client.reactive.JdkClientHttpConnector;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientRequestException;
import org.springframework.web.reactive.function.client.WebClientResponseException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** An application of WebFlux on the loopback. */
class BootReactiveTest {
  private static final WriteId CAME = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);

  private static final Map<String, Supplier<ClientHttpConnector>> CONNECTORS =
      Map.of("jdk", JdkClientHttpConnector::new, "reactor", ReactorClientHttpConnector::new);

  private static ConfigurableApplicationContext application;
  private static String address;
  private static Settings before;

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    NettyReactiveWebServerFactory server() {
      return new NettyReactiveWebServerFactory();
    }

    @Bean
    Controller controller(WebClient.Builder clients) {
      return new Controller(clients);
    }
  }

  @RestController
  static class Controller {
    private final WebClient.Builder clients;

    Controller(WebClient.Builder clients) {
      this.clients = clients;
    }

    @GetMapping("/read")
    Mono<String> read() {
      return Mono.just(Antipode.current().serialize());
    }

    @GetMapping("/write")
    Mono<String> write() {
      return Mono.just(Antipode.append(ADDED).serialize());
    }

    /** Writes in the present hour, what is old goes into no cookie, and sets one of its own. */
    @GetMapping("/save")
    Mono<String> save(ServerHttpResponse response) {
      response.addCookie(ResponseCookie.from("mine", "1").build());
      return Mono.delay(Duration.ofMillis(1))
          .map(tick -> Antipode.append(WriteId.of("users", "log", 9)).serialize());
    }

    @GetMapping("/delayed")
    Mono<String> delayed() {
      return Mono.delay(Duration.ofMillis(5)).map(tick -> Antipode.append(ADDED).serialize());
    }

    @GetMapping("/elastic")
    Mono<String> elastic() {
      return Mono.fromCallable(() -> Antipode.append(ADDED).serialize())
          .subscribeOn(Schedulers.boundedElastic());
    }

    @GetMapping("/many")
    Mono<String> many() {
      return Flux.range(0, 50)
          .flatMap(
              i -> Mono.delay(Duration.ofMillis(1)).doOnNext(tick -> Antipode.append(ADDED)), 50)
          .then(Mono.fromSupplier(() -> Antipode.current().serialize()));
    }

    @GetMapping("/throw")
    Mono<String> fail() {
      return Mono.delay(Duration.ofMillis(1))
          .map(
              tick -> {
                Antipode.append(ADDED);
                throw new IllegalStateException("of the handler");
              });
    }

    @GetMapping("/throw-at-once")
    Mono<String> failAtOnce() {
      Antipode.append(ADDED);
      throw new IllegalStateException("of the handler");
    }

    @GetMapping("/headers")
    List<String> headers(ServerHttpRequest request) {
      return request.getHeaders().getOrDefault(Headers.BAGGAGE, List.of());
    }

    @GetMapping("/send")
    Mono<List<String>> send(@RequestParam String by) {
      WebClient client =
          clients.clone().clientConnector(CONNECTORS.get(by).get()).baseUrl(address).build();
      return Mono.delay(Duration.ofMillis(1))
          .flatMap(
              tick -> {
                Antipode.append(ADDED);
                return client
                    .get()
                    .uri("/headers")
                    .header(Headers.BAGGAGE, "tenant=seven")
                    .retrieve()
                    .bodyToMono(new ParameterizedTypeReference<List<String>>() {});
              });
    }

    @GetMapping("/relay")
    Mono<String> relay() {
      return clients
          .clone()
          .baseUrl(address)
          .build()
          .get()
          .uri("/write")
          .retrieve()
          .bodyToMono(String.class)
          .map(ignored -> Antipode.current().serialize());
    }
  }

  @BeforeAll
  static void start() {
    before = Settings.current();
    SpringApplication reactive = new SpringApplication(Application.class);
    reactive.setWebApplicationType(WebApplicationType.REACTIVE);
    application =
        reactive.run(
            "--antipode.session.keys=a secret of this service",
            "--server.port=0",
            "--server.address=127.0.0.1",
            "--spring.main.banner-mode=off",
            "--logging.level.root=off");
    int port = ((ReactiveWebServerApplicationContext) application).getWebServer().getPort();
    address = "http://127.0.0.1:" + port;
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

  private static <T> @Nullable T get(String path, Class<T> type) {
    WebClient client = application.getBean(WebClient.Builder.class).baseUrl(address).build();
    return client.get().uri(path).retrieve().bodyToMono(type).block();
  }

  private static Lineage get(String path) {
    return Lineage.deserialize(get(path, String.class));
  }

  @Test
  void theNextRequestOfAUserStartsFromWhatTheLastOneWrote() {
    ResponseEntity<String> saved = visit("/save", "other=1");
    List<String> cookies = saved.getHeaders().get(HttpHeaders.SET_COOKIE);
    assertThat(cookies).hasSize(2).contains("mine=1");
    String cookie =
        cookies.stream().filter(each -> each.startsWith("antipode=")).findFirst().orElseThrow();
    assertThat(cookie).endsWith("; Path=/; HttpOnly; SameSite=Lax");
    assertThat(saved.getHeaders().getCacheControl()).isEqualTo("private");
    ResponseEntity<String> read = visit("/read", cookie.substring(0, cookie.indexOf(';')));
    assertThat(read.getBody()).isEqualTo(saved.getBody());
    assertThat(read.getHeaders().get(HttpHeaders.SET_COOKIE)).as("it added nothing").isNull();
    assertThat(visit("/read", "antipode=x:1~ka.5.k.forged").getHeaders().getFirst("Set-Cookie"))
        .as("a forged one is removed")
        .startsWith("antipode=; Max-Age=0; ");
  }

  @Test
  void aPageStartsFromTheTokenOfAnEvent() {
    Lineage depends = Lineage.of(WriteId.of("users", "log", 9));
    String token;
    try (ScopeBlock ignored = Antipode.scope(depends)) {
      token = application.getBean(SessionCookie.class).token();
    }
    ResponseEntity<String> read = visit("/read", SessionCookie.TOKEN_HEADER, token);
    assertThat(read.getBody()).isEqualTo(depends.serialize());
    assertThat(read.getHeaders().get(HttpHeaders.SET_COOKIE)).as("it added nothing").isNull();
  }

  private static ResponseEntity<String> visit(String path, String cookie) {
    return visit(path, HttpHeaders.COOKIE, cookie);
  }

  private static ResponseEntity<String> visit(String path, String header, String value) {
    return WebClient.create(address)
        .get()
        .uri(path)
        .header(header, value)
        .retrieve()
        .toEntity(String.class)
        .block();
  }

  @Test
  void aRequestHasTheLineageOfItsCaller() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      assertThat(get("/read")).isEqualTo(Lineage.of(CAME));
      assertThat(block.scope().leaving()).isEqualTo(Lineage.of(CAME));
    }
    for (int i = 0; i < 20; i++) {
      assertThat(get("/read")).as("a scope of its own").isEqualTo(Lineage.empty());
    }
  }

  @Test
  void theScopeFollowsFromThreadToThread() {
    for (String path : List.of("/write", "/delayed", "/elastic", "/many", "/relay")) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        assertThat(get(path)).as(path).isEqualTo(Lineage.of(CAME, ADDED));
        assertThat(block.scope().leaving()).as(path).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void noThreadKeepsAScope() {
    for (int i = 0; i < 20; i++) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        get("/many");
      }
    }
    List<Boolean> held =
        Flux.range(0, 20)
            .flatMap(
                i ->
                    Mono.fromCallable(() -> Scope.currentOrNull() != null)
                        .subscribeOn(Schedulers.parallel()))
            .collectList()
            .block();
    assertThat(held).containsOnly(false);
  }

  @Test
  void aFailedHandlerAnswersAsWell() {
    for (String path : List.of("/throw", "/throw-at-once")) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        assertThatThrownBy(() -> get(path))
            .isInstanceOf(WebClientResponseException.InternalServerError.class);
        assertThat(block.scope().leaving()).as(path).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void aClientSendsTheLineageOfTheMomentOnce() {
    for (String by : CONNECTORS.keySet()) {
      try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
        List<?> headers = get("/send?by=" + by, List.class);
        assertThat(headers).as(by).hasSize(1);
        String header = (String) headers.get(0);
        assertThat(Headers.members(List.of(header)))
            .as(by)
            .map(Lineage::deserialize)
            .containsExactly(Lineage.of(CAME, ADDED));
        assertThat(block.scope().leaving()).as(by).isEqualTo(Lineage.of(CAME, ADDED));
      }
    }
  }

  @Test
  void aCallThatWasNotSentLeavesNoMark() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(CAME))) {
      WebClient client = application.getBean(WebClient.Builder.class).build();
      assertThatThrownBy(
              () -> client.get().uri("http://127.0.0.1:1/").retrieve().toBodilessEntity().block())
          .isInstanceOf(WebClientRequestException.class);
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
