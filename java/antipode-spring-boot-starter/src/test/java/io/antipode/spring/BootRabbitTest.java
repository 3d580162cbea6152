package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.request.ScopeBlock;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.annotation.Exchange;
import org.springframework.amqp.rabbit.annotation.Queue;
import org.springframework.amqp.rabbit.annotation.QueueBinding;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;

/** Spring AMQP on a real broker: beside Spring's own observation, and what else instruments it. */
@Tag("lab")
class BootRabbitTest {
  private static final WriteId CAUSE = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId LATER = WriteId.of("posts", "log", 6).writtenAt(100);
  private static final WriteId ADDED = WriteId.of("users", "log", 7).writtenAt(100);

  private static Lab lab;
  private static ConfigurableApplicationContext application;

  private final RabbitTemplate template = template("rabbitTemplate");
  private final RabbitTemplate own = template("own");
  private final BlockingQueue<Seen> seen = application.getBean(Listeners.class).seen;

  /** What a listener found: its lineage, and the header that it came from. */
  private record Seen(Lineage lineage, List<String> members) {}

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    Listeners listeners(WebClient.Builder clients) {
      return new Listeners(clients.build());
    }

    /** A template that the application makes itself, with settings of its own. */
    @Bean(defaultCandidate = false)
    RabbitTemplate own(ConnectionFactory connections) {
      RabbitTemplate template = new RabbitTemplate(connections);
      template.setExchange("news");
      template.setRoutingKey("key");
      template.addConsumerArg("x-priority", 5);
      return template;
    }

    @Bean(defaultCandidate = false)
    Extended extended(ConnectionFactory connections) {
      return new Extended(connections);
    }
  }

  /** A class that only the application can make. */
  static class Extended extends RabbitTemplate {
    Extended(ConnectionFactory connections) {
      super(connections);
    }
  }

  static class Listeners {
    final BlockingQueue<Seen> seen = new ArrayBlockingQueue<>(10);
    final BlockingQueue<CompletableFuture<String>> promised = new ArrayBlockingQueue<>(10);
    private final WebClient client;

    Listeners(WebClient client) {
      this.client = client;
    }

    @RabbitListener(
        bindings =
            @QueueBinding(
                value = @Queue("inbox"),
                exchange = @Exchange(value = "news", type = "topic"),
                key = "#"))
    void handle(Message message) {
      Object header = message.getMessageProperties().getHeader(Headers.BAGGAGE);
      List<String> members =
          header == null ? List.of() : Headers.members(List.of(header.toString()));
      seen.add(new Seen(Antipode.current(), members));
    }

    @RabbitListener(queuesToDeclare = @Queue("questions"))
    String answer(String question) {
      Lineage ignored = Antipode.append(ADDED);
      return question;
    }

    @RabbitListener(queuesToDeclare = @Queue("futures"))
    CompletableFuture<String> answerLater(String question) {
      Lineage ignored = Antipode.append(ADDED);
      CompletableFuture<String> promise = new CompletableFuture<>();
      promised.add(promise);
      return promise;
    }

    @RabbitListener(queuesToDeclare = @Queue("monos"))
    Mono<String> answerByMono(String question) {
      return Mono.delay(Duration.ofMillis(1))
          .map(
              tick -> {
                Lineage ignored = Antipode.append(ADDED);
                return question;
              });
    }

    /** Answers what another service answers, whose address the message is. */
    @RabbitListener(queuesToDeclare = @Queue("relayed"))
    CompletableFuture<String> relay(String address) {
      return client.get().uri(address).retrieve().bodyToMono(String.class).toFuture();
    }

    @RabbitListener(queuesToDeclare = @Queue("told"))
    CompletableFuture<String> subscribe(String address) {
      CompletableFuture<String> answer = new CompletableFuture<>();
      client
          .get()
          .uri(address)
          .retrieve()
          .bodyToMono(String.class)
          .subscribe(answer::complete, answer::completeExceptionally);
      return answer;
    }

    @RabbitListener(queuesToDeclare = @Queue("box"), autoStartup = "false")
    void never(String unused) {}
  }

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.start();
    SpringApplication main = new SpringApplication(Application.class);
    main.setWebApplicationType(WebApplicationType.NONE);
    main.setDefaultProperties(
        Map.of(
            "spring.rabbitmq.port", Lab.port(lab.url()),
            "spring.rabbitmq.publisher-confirm-type", "correlated",
            "spring.rabbitmq.template.observation-enabled", "true",
            "spring.rabbitmq.listener.simple.observation-enabled", "true",
            "management.tracing.sampling.probability", "1.0",
            "antipode.rabbitmq.datastore", "inbox"));
    application = main.run();
  }

  @AfterAll
  static void stop() throws Exception {
    application.close();
    lab.close();
  }

  @BeforeEach
  void nothingWasSeen() {
    seen.clear();
  }

  private static RabbitTemplate template(String bean) {
    return application.getBean(bean, RabbitTemplate.class);
  }

  private Lineage handled() throws InterruptedException {
    Seen found = seen.poll(20, TimeUnit.SECONDS);
    assertThat(found).isNotNull();
    assertThat(found.members()).as("members of ours").hasSizeLessThanOrEqualTo(1);
    assertThat(found.lineage().incomplete()).isEmpty();
    return found.lineage();
  }

  private void confirmed(String body) throws Exception {
    CorrelationData correlation = new CorrelationData();
    template.convertAndSend("news", "key", (Object) body, correlation);
    assertThat(correlation.getFuture().get(20, TimeUnit.SECONDS).isAck()).isTrue();
  }

  @Test
  void aListenerDependsOnWhatItsMessageDependsOn() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      Lineage later = Antipode.append(LATER); // The baggage of the context is older.
      confirmed("1");
      assertThat(Antipode.current().writes()).hasSize(2).containsAll(later.writes());
      assertThat(handled()).isEqualTo(Antipode.current());
    }
  }

  @Test
  void aMessageHasNothingOfTheOneBefore() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      confirmed("1");
      assertThat(handled().writes()).contains(CAUSE);
    }
    try (ScopeBlock request = Antipode.scope(Lineage.of(ADDED))) {
      confirmed("2");
      assertThat(handled().writes()).contains(ADDED).doesNotContain(CAUSE);
    }
  }

  @Test
  void aMessageFromOutsideOfAScopeDependsOnItselfAlone() throws Exception {
    confirmed("1");
    assertThat(handled().writes()).extracting(WriteId::datastore).containsExactly("inbox");
  }

  @Test
  void aTemplateOfTheApplicationsOwnCarriesLineagesAndKeepsItsSettings() throws Exception {
    assertThat(own).isInstanceOf(AntipodeRabbitTemplate.class);
    assertThat(own).hasFieldOrPropertyWithValue("consumerArgs", Map.of("x-priority", 5));
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      CorrelationData correlation = new CorrelationData();
      own.correlationConvertAndSend("1", correlation);
      assertThat(correlation.getFuture().get(20, TimeUnit.SECONDS).isAck()).isTrue();
      assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
      assertThat(handled()).isEqualTo(Antipode.current());
    }
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      assertThat(own.convertSendAndReceive("", "questions", "why")).isEqualTo("why");
      assertThat(Antipode.current().writes()).containsExactly(CAUSE, ADDED);
    }
  }

  @Test
  void aTemplateOfAClassOfTheApplicationsStays() {
    assertThat(template("extended")).isExactlyInstanceOf(Extended.class);
  }

  @Test
  void aReplyBringsBackWhatItsListenerWrote() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      assertThat(template.convertSendAndReceive("", "questions", "why")).isEqualTo("why");
      assertThat(Antipode.current().writes()).containsExactly(CAUSE, ADDED);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  /** Asks as a request of its own, from which it returns what the reply brought back. */
  private CompletableFuture<Lineage> asked(String queue, String question) {
    return CompletableFuture.supplyAsync(
        () -> {
          try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
            assertThat(template.convertSendAndReceive("", queue, question)).isNotNull();
            return Antipode.current();
          }
        });
  }

  /** Returns what a listener has promised, once Spring waits for it. */
  private static CompletableFuture<String> promised() throws InterruptedException {
    CompletableFuture<String> promise =
        application.getBean(Listeners.class).promised.poll(20, TimeUnit.SECONDS);
    assertThat(promise).isNotNull();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (promise.getNumberOfDependents() == 0 && System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    return promise;
  }

  @Test
  void theReplyOfAFutureBringsBackWhatItsListenerWrote() throws Exception {
    CompletableFuture<Lineage> asked = asked("futures", "why");
    promised().complete("so");
    assertThat(asked.get(20, TimeUnit.SECONDS)).isEqualTo(Lineage.of(CAUSE, ADDED));
  }

  @Test
  void aReplyIsNotOfTheRequestThatCompletesItsFuture() throws Exception {
    CompletableFuture<Lineage> asked = asked("futures", "why");
    try (ScopeBlock other = Antipode.scope(Lineage.of(LATER))) {
      promised().complete("so");
      assertThat(Antipode.current()).isEqualTo(Lineage.of(LATER));
    }
    assertThat(asked.get(20, TimeUnit.SECONDS)).isEqualTo(Lineage.of(CAUSE, ADDED));
  }

  @Test
  void theReplyOfAMonoBringsBackWhatItWrote() throws Exception {
    assertThat(asked("monos", "why").get(20, TimeUnit.SECONDS)).isEqualTo(Lineage.of(CAUSE, ADDED));
  }

  @ParameterizedTest
  @ValueSource(strings = {"relayed", "told"})
  void aCallInAListenerCarriesItsLineageAndTheReplyWhatCameBack(String queue) throws Exception {
    BlockingQueue<String> headers = new ArrayBlockingQueue<>(10);
    HttpServer service =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    service.createContext(
        "/",
        exchange -> {
          headers.add(String.valueOf(exchange.getRequestHeaders().getFirst(Headers.BAGGAGE)));
          exchange.getResponseHeaders().add(Headers.LINEAGE, Lineage.of(ADDED).serialize());
          exchange.sendResponseHeaders(200, 2);
          exchange.getResponseBody().write(new byte[] {'s', 'o'});
          exchange.close();
        });
    service.start();
    try {
      String address = "http://127.0.0.1:" + service.getAddress().getPort() + "/";
      assertThat(asked(queue, address).get(20, TimeUnit.SECONDS))
          .isEqualTo(Lineage.of(CAUSE, ADDED));
      assertThat(Headers.members(List.of(headers.take()))).contains(Lineage.of(CAUSE).serialize());
    } finally {
      service.stop(0);
    }
  }

  @Test
  void aMessageThatIsReceivedIsMergedIntoTheScope() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      template.convertAndSend("", "box", "1");
    }
    try (ScopeBlock request = Antipode.scope()) {
      assertThat(template.receiveAndConvert("box", 20_000)).isEqualTo("1");
      assertThat(Antipode.current()).isEqualTo(Lineage.of(CAUSE));
    }
  }
}
