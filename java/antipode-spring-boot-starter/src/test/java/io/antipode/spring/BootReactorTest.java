package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.OutgoingCall;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Ways to use Reactor in handlers of MVC and of WebFlux, whatever it is told to propagate. */
@Tag("slow")
class BootReactorTest {
  private static final WriteId CAME = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);

  private static final Lineage BOTH = Lineage.of(CAME, ADDED);

  /** What a handler does with a call of another service. */
  private static final Map<String, UnaryOperator<Mono<String>>> WAYS =
      Map.of(
          "mono", called -> called,
          "future", called -> Mono.fromFuture(called.toFuture()),
          "subscribe", BootReactorTest::subscribed,
          "inner", BootReactorTest::inner,
          "subscribe-on", called -> called.subscribeOn(Schedulers.boundedElastic()),
          "publish-on",
              called -> called.publishOn(Schedulers.parallel()).map(BootReactorTest::still),
          "delay", called -> Mono.delay(Duration.ofMillis(1)).flatMap(tick -> called),
          "blocking",
              called -> Mono.fromCallable(called::block).subscribeOn(Schedulers.boundedElastic()),
          "resume", called -> failed().onErrorResume(error -> called));

  private static final Map<String, UnaryOperator<Mono<String>>> BLOCKING =
      Map.of("block", called -> Mono.just(called.block()));

  private ConfigurableApplicationContext application;
  private Settings before;
  private boolean wasAutomatic;

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    Controller controller(WebClient.Builder clients) {
      return new Controller(clients.build());
    }
  }

  @RestController
  static class Controller {
    private final WebClient client;

    Controller(WebClient client) {
      this.client = client;
    }

    @GetMapping("/write")
    Mono<String> write() {
      return Mono.just(Antipode.append(ADDED).serialize());
    }

    @GetMapping("/by/{way}/{port}")
    Mono<String> by(@PathVariable String way, @PathVariable int port) {
      return WAYS.getOrDefault(way, BLOCKING.get(way)).apply(called(port));
    }

    @GetMapping("/callable/{port}")
    Callable<String> callable(@PathVariable int port) {
      return () -> called(port).block();
    }

    private Mono<String> called(int port) {
      return client
          .get()
          .uri("http://127.0.0.1:" + port + "/write")
          .retrieve()
          .bodyToMono(String.class)
          .map(BootReactorTest::still);
    }
  }

  /** The callee saw what the caller sent, and the caller has what came back. */
  private static String still(String seen) {
    assertThat(Lineage.deserialize(seen)).isEqualTo(Antipode.current());
    return seen;
  }

  private static Mono<String> inner(Mono<String> called) {
    return Flux.range(0, 20)
        .flatMap(i -> called, 20)
        .collectList()
        .map(
            all -> {
              assertThat(all).hasSize(20).containsOnly(all.get(0));
              return still(all.get(0));
            });
  }

  private static Mono<String> subscribed(Mono<String> called) {
    CompletableFuture<String> result = new CompletableFuture<>();
    called.subscribe(result::complete, result::completeExceptionally);
    return Mono.fromFuture(result);
  }

  private static Mono<String> failed() {
    return Mono.delay(Duration.ofMillis(1))
        .flatMap(tick -> Mono.error(new IllegalStateException("of the handler")));
  }

  @BeforeEach
  void remember() {
    before = Settings.current();
    wasAutomatic = Hooks.isAutomaticContextPropagationEnabled();
    Hooks.disableAutomaticContextPropagation();
    OutgoingCall.forgetPeers();
  }

  @AfterEach
  void forget() {
    application.close();
    Settings.configure(settings -> before);
    Hooks.disableAutomaticContextPropagation();
    if (wasAutomatic) {
      Hooks.enableAutomaticContextPropagation();
    }
  }

  private int started(WebApplicationType type, String propagation) {
    SpringApplication starting = new SpringApplication(Application.class);
    starting.setWebApplicationType(type);
    application =
        starting.run(
            "--server.port=0",
            "--server.address=127.0.0.1",
            "--spring.main.banner-mode=off",
            "--logging.level.root=error",
            propagation.equals("unset")
                ? "--antipode.region=eu"
                : "--spring.reactor.context-propagation=" + propagation);
    return ((WebServerApplicationContext) application).getWebServer().getPort();
  }

  @ParameterizedTest
  @CsvSource({
    "SERVLET, unset",
    "SERVLET, limited",
    "SERVLET, auto",
    "REACTIVE, unset",
    "REACTIVE, limited",
    "REACTIVE, auto"
  })
  void aHandlerCarriesItsLineageInEveryWayAndReactorStaysAsItIsConfigured(
      WebApplicationType type, String propagation) {
    int port = started(type, propagation);
    assertThat(Hooks.isAutomaticContextPropagationEnabled()).isEqualTo(propagation.equals("auto"));
    Set<String> paths = new TreeSet<>();
    WAYS.keySet().forEach(way -> paths.add("/by/" + way));
    if (type == WebApplicationType.SERVLET) {
      BLOCKING.keySet().forEach(way -> paths.add("/by/" + way));
      paths.add("/callable");
    }
    assertThat(paths).allSatisfy(path -> assertThat(answer(port, path)).isEqualTo(BOTH));
  }

  private static Lineage answer(int port, String path) {
    String text =
        WebClient.create("http://127.0.0.1:" + port)
            .get()
            .uri(path + "/" + port)
            .header("baggage", "antipode=" + Lineage.of(CAME).serialize())
            .retrieve()
            .bodyToMono(String.class)
            .block();
    return Lineage.deserialize(text);
  }
}
