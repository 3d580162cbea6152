package io.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierResult;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.Status;
import io.antipode.barrier.Wake;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.opentelemetry.api.baggage.Baggage;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Consumers on a real broker: what a handler sees, and what becomes of each message. */
@Tag("lab")
class RabbitMqConsumerTest {
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final WriteId CAUSE = WriteId.of("posts", "log", 5).writtenAt(490_000);

  private static Lab lab;

  private final String name = "q" + UUID.randomUUID();
  private final RabbitMqInstrumentation news =
      RabbitMqInstrumentation.of("news").withExchange(name);
  private final Posts posts = new Posts();
  private final List<Delivery> seen = new CopyOnWriteArrayList<>();
  private final List<Lineage> lineages = new CopyOnWriteArrayList<>();
  private final List<RabbitMqConsumer> workers = new ArrayList<>();
  private final List<CompletableFuture<Void>> runs = new ArrayList<>();
  private Connection connection;
  private Channel channel;

  /** A store whose writes become visible when a test says so. */
  private static final class Posts extends Shim {
    volatile Status status = Status.NOT_YET;

    Posts() {
      super("posts", ReadsFrom.REPLICA);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration most) {
          Observation.Builder seen = Observation.of("server");
          writes.forEach(write -> seen.write(write, status, ""));
          return seen.build();
        }

        @Override
        public void pause(Duration most, Wake wake) throws InterruptedException {
          boolean ignored = wake.await(Duration.ofMillis(10));
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeAll
  static void startBroker() throws Exception {
    lab = Lab.start();
  }

  @AfterAll
  static void stopBroker() throws Exception {
    if (lab != null) {
      lab.close();
    }
  }

  @BeforeEach
  void connect() throws Exception {
    Shims.register(posts);
    connection = news.instrument(open(true));
    channel = connection.createChannel();
    channel.confirmSelect();
    channel.exchangeDeclare(name, "fanout", true);
    channel.queueDeclare(name, true, false, false, null);
    channel.queueDeclare(dead(), true, false, false, null);
    channel.queueBind(name, name, "");
  }

  private static Connection open(boolean recovers) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(lab.url());
    factory.setAutomaticRecoveryEnabled(recovers);
    factory.setNetworkRecoveryInterval(500);
    return factory.newConnection();
  }

  @AfterEach
  void disconnect() throws Exception {
    workers.forEach(RabbitMqConsumer::stop);
    for (CompletableFuture<Void> run : runs) {
      run.handle((nothing, error) -> null).get(20, TimeUnit.SECONDS);
    }
    posts.close();
    channel.queueDelete(name);
    channel.queueDelete(dead());
    channel.exchangeDelete(name);
    connection.abort();
  }

  private String dead() {
    return "antipode.dead." + name;
  }

  private ConsumerOptions options() {
    return ConsumerOptions.of(name, "news")
        .withDelay(Duration.ofMillis(50), Duration.ofMillis(400));
  }

  private void publish(String body, Map<String, Object> headers, String expiration)
      throws Exception {
    BasicProperties properties =
        new BasicProperties.Builder()
            .headers(headers)
            .deliveryMode(2)
            .expiration(expiration)
            .correlationId("c")
            .build();
    channel.basicPublish(name, "the.key", properties, body.getBytes(StandardCharsets.UTF_8));
    channel.waitForConfirmsOrDie(20_000);
  }

  /** Publishes a message that depends on a write of the store. */
  private void publishLate(String body) throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      publish(body, Map.of("mine", 1), null);
    }
  }

  private static String text(Delivery message) {
    return new String(message.getBody(), StandardCharsets.UTF_8);
  }

  private List<String> bodies() {
    return seen.stream().map(RabbitMqConsumerTest::text).toList();
  }

  private void see(Delivery message) {
    seen.add(message);
    lineages.add(Antipode.current());
  }

  /** Consumes in a thread until the end of the test, or until it fails. */
  private CompletableFuture<Void> work(ConsumerOptions options, RabbitMqConsumer.Handler handler)
      throws Exception {
    RabbitMqConsumer worker = new RabbitMqConsumer(connection.createChannel(), options, handler);
    workers.add(worker);
    CompletableFuture<Void> run =
        CompletableFuture.runAsync(
            () -> {
              try {
                worker.run();
              } catch (Exception error) {
                throw new CompletionException(error);
              }
            },
            task -> new Thread(task, "test-worker").start());
    runs.add(run);
    return run;
  }

  private static long counted(String what) {
    return Counts.all().getOrDefault(new Counts.Metric(what, "news"), 0L);
  }

  /** Returns once something holds; fails where a worker failed. */
  private void until(BooleanSupplier holds) throws Exception {
    long end = System.nanoTime() + SOON.toNanos();
    CountDownLatch never = new CountDownLatch(1);
    while (!holds.getAsBoolean()) {
      assertThat(System.nanoTime()).as("in time").isLessThan(end);
      for (CompletableFuture<Void> run : runs) {
        if (run.isCompletedExceptionally()) {
          run.join();
        }
      }
      boolean ignored = never.await(10, TimeUnit.MILLISECONDS); // Polls, with a deadline.
    }
  }

  private void deferrals(int least) throws Exception {
    long wanted = counted("message_deferred") + least;
    until(() -> counted("message_deferred") >= wanted);
  }

  private long depth(String queue) {
    try {
      return channel.messageCount(queue);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Returns the next dead letter. */
  private GetResponse letter() throws Exception {
    List<GetResponse> found = new ArrayList<>();
    until(
        () -> {
          try {
            GetResponse got = channel.basicGet(dead(), true);
            return got != null && found.add(got);
          } catch (IOException error) {
            throw new IllegalStateException(error);
          }
        });
    return found.get(0);
  }

  private static Map<?, ?> why(GetResponse letter) {
    return (Map<?, ?>) letter.getProps().getHeaders().get("antipode-dead-letter");
  }

  @Test
  void aVisibleMessageIsHandledAtOnceInItsOwnScopeAndThenAcknowledged() throws Exception {
    posts.status = Status.VISIBLE;
    publishLate("one");
    CompletableFuture<Void> run = work(options(), this::see);
    until(() -> !seen.isEmpty());
    workers.get(0).stop();
    run.get(20, TimeUnit.SECONDS);
    assertThat(lineages.get(0).writes()).hasSize(2).contains(CAUSE);
    assertThat(depth(name)).isZero();
  }

  @Test
  void aDeferredMessageComesBackAsItWas() throws Exception {
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      Map<String, Object> headers = Map.of("mine", 1, "CC", List.of(), "baggage", "tenant=acme");
      publish("body", headers, "600000");
    }
    List<String> tenants = new CopyOnWriteArrayList<>();
    CompletableFuture<Void> ignored =
        work(
            options(),
            message -> {
              see(message);
              tenants.add(String.valueOf(Baggage.current().getEntryValue("tenant")));
            });
    deferrals(2);
    posts.status = Status.VISIBLE;
    until(() -> !seen.isEmpty());
    Delivery message = seen.get(0);
    assertThat(text(message)).isEqualTo("body");
    assertThat(message.getEnvelope().getExchange()).isEqualTo(name);
    assertThat(message.getEnvelope().getRoutingKey()).isEqualTo("the.key");
    assertThat(message.getProperties().getHeaders())
        .containsOnlyKeys("mine", "CC", "baggage", "antipode-write");
    assertThat(message.getProperties().getExpiration()).isEqualTo("600000");
    assertThat(message.getProperties().getCorrelationId()).isEqualTo("c");
    assertThat(message.getProperties().getMessageId()).isNull();
    assertThat(lineages.get(0).writes()).hasSize(2).contains(CAUSE);
    assertThat(tenants).containsExactly("acme");
  }

  @Test
  void nothingOfOneMessageIsInTheNext() throws Exception {
    publish("0", null, null);
    publish("1", null, null);
    CompletableFuture<Void> ignored =
        work(
            options().withOnError(OnError.DEAD_LETTER),
            message -> {
              see(message);
              Lineage unused = Antipode.append(CAUSE);
              throw new IllegalStateException();
            });
    until(() -> seen.size() == 2);
    assertThat(lineages)
        .allSatisfy(
            lineage ->
                assertThat(lineage.writes()).extracting(WriteId::datastore).containsOnly("news"));
  }

  @Test
  void aMessageWaitsInTheBackgroundAndIsNotDeferred() throws Exception {
    long before = counted("message_deferred");
    publishLate("late");
    for (int number = 0; number < 5; number++) {
      publish("" + number, null, null);
    }
    CompletableFuture<Void> ignored = work(options().waiting(SOON).withPrefetch(2), this::see);
    until(() -> seen.size() == 5);
    posts.status = Status.VISIBLE;
    until(() -> seen.size() == 6);
    assertThat(bodies()).endsWith("late");
    assertThat(lineages.get(5).writes()).contains(CAUSE);
    assertThat(counted("message_deferred")).isEqualTo(before);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void afterItsAttemptsAMessageIsGivenUp(boolean waits) throws Exception {
    ConsumerOptions options = options().withMaxAttempts(3);
    long before = counted("message_deferred");
    publishLate("body");
    CompletableFuture<Void> ignored =
        work(waits ? options.waiting(Duration.ofMillis(50)) : options, this::see);
    GetResponse letter = letter();
    assertThat(why(letter).get("reason")).hasToString("barrier_timeout");
    assertThat(why(letter).get("attempts")).isEqualTo(3);
    assertThat(why(letter).get("queue")).hasToString(name);
    assertThat(((List<?>) why(letter).get("outcomes")).get(0).toString()).contains("not_yet");
    assertThat(counted("message_deferred")).isEqualTo(before + 2);
    assertThat(seen).isEmpty();

    // Moved back, as an operator does: it begins anew.
    InstrumentedChannel.real(channel).basicPublish("", name, letter.getProps(), letter.getBody());
    deferrals(2);
    posts.status = Status.VISIBLE;
    until(() -> !seen.isEmpty());
    assertThat(seen.get(0).getEnvelope().getExchange()).isEqualTo(name);
    assertThat(seen.get(0).getProperties().getHeaders())
        .containsOnlyKeys("mine", "baggage", "antipode-write");
  }

  @Test
  void whatIsLostIsGivenUpAtOnce() throws Exception {
    posts.status = Status.LOST;
    publishLate("body");
    CompletableFuture<Void> ignored = work(options(), this::see);
    GetResponse letter = letter();
    assertThat(why(letter).get("reason")).hasToString("dependency_lost");
    assertThat(why(letter).get("attempts")).isEqualTo(1);
    assertThat(seen).isEmpty();
  }

  @Test
  void aBarrierOfTheHandlersOwnDefersToo() throws Exception {
    publishLate("late");
    long before = counted("message_deferred");
    CompletableFuture<Void> ignored =
        work(
            options().withExclude("posts"),
            message -> {
              see(message);
              posts.status = seen.size() == 1 ? Status.NOT_YET : Status.VISIBLE;
              BarrierResult unused =
                  Barriers.barrier(
                      BarrierOptions.timeout(seen.size() == 1 ? Duration.ofMillis(50) : SOON));
            });
    until(() -> seen.size() == 2);
    assertThat(counted("message_deferred")).isEqualTo(before + 1);
  }

  @Test
  void aMessageDoesNotWaitForWhatItsHandlerFulfils() throws Exception {
    Promise promise;
    try (ScopeBlock request = Antipode.scope()) {
      promise = Antipode.promise("posts", Duration.ofMinutes(1));
      publish("refund", null, null);
    }
    CompletableFuture<Void> ignored = work(options().withFulfils(message -> promise), this::see);
    until(() -> !seen.isEmpty());
    assertThat(lineages.get(0).promises()).isEmpty();
  }

  @Test
  void aHandlerThatFailsEndsTheWorkerAndLosesNothing() throws Exception {
    publish("one", null, null);
    publish("two", null, null);
    RabbitMqConsumer worker =
        new RabbitMqConsumer(
            connection.createChannel(),
            options(),
            message -> {
              throw new IOException("of mine");
            });
    assertThatThrownBy(worker::run).isInstanceOf(IOException.class).hasMessage("of mine");
    until(() -> depth(name) == 2);
    assertThat(Antipode.current()).isEqualTo(Lineage.empty());
  }

  @ParameterizedTest
  @EnumSource(names = {"REQUEUE", "DEFER"})
  void aMessageWhoseHandlerFailedComesAgain(OnError onError) throws Exception {
    publish("poor", null, null);
    publish("good", null, null);
    long before = counted("message_deferred");
    CompletableFuture<Void> ignored =
        work(
            options().withOnError(onError),
            message -> {
              see(message);
              if (text(message).equals("poor")
                  && bodies().stream().filter("poor"::equals).count() < 3) {
                throw new IllegalStateException();
              }
            });
    until(() -> seen.size() == 4);
    assertThat(counted("message_deferred") - before).isEqualTo(onError == OnError.DEFER ? 2 : 0);
  }

  @Test
  void aMessageWhoseHandlerFailedIsGivenUp() throws Exception {
    publish("poor", null, null);
    CompletableFuture<Void> ignored =
        work(
            options().withOnError(OnError.DEAD_LETTER),
            message -> {
              throw new IllegalStateException("of mine");
            });
    GetResponse letter = letter();
    assertThat(why(letter).get("reason")).hasToString("handler_failed");
    assertThat(why(letter).get("message")).hasToString("IllegalStateException: of mine");
  }

  @Test
  void stopFinishesTheMessageInHandAndGivesBackTheRest() throws Exception {
    publishLate("late");
    for (int number = 0; number < 3; number++) {
      publish("" + number, null, null);
    }
    CompletableFuture<Void> run =
        work(
            options().waiting(SOON),
            message -> {
              see(message);
              workers.get(0).stop();
            });
    run.get(20, TimeUnit.SECONDS);
    assertThat(bodies()).containsExactly("0");
    until(() -> depth(name) == 3);
  }

  @Test
  void anInterruptGivesTheMessageBack() throws Exception {
    publish("one", null, null);
    RabbitMqConsumer worker =
        new RabbitMqConsumer(
            connection.createChannel(),
            options().withOnError(OnError.DEAD_LETTER),
            message -> {
              throw new InterruptedException();
            });
    assertThatThrownBy(worker::run).isInstanceOf(InterruptedException.class);
    until(() -> depth(name) == 1);
  }

  @Test
  void aQueueThatIsDeletedEndsTheConsumer() throws Exception {
    CompletableFuture<Void> run = work(options(), this::see);
    until(() -> consumers() == 1);
    channel.queueDelete(name);
    assertThatThrownBy(() -> run.get(20, TimeUnit.SECONDS)).hasCauseInstanceOf(IOException.class);
  }

  private long consumers() {
    try {
      return channel.consumerCount(name);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aLostChannelEndsTheConsumer(boolean recovers) throws Exception {
    Connection other = open(recovers);
    RabbitMqConsumer worker = new RabbitMqConsumer(other.createChannel(), options(), this::see);
    worker.start();
    other.abort();
    assertThatThrownBy(worker::run).isInstanceOf(ShutdownSignalException.class);
  }
}
