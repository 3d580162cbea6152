package io.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.lab.Lab;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Instrumented channels on a real broker. */
@Tag("lab")
class InstrumentedChannelTest {
  private static final WriteId CAUSE = WriteId.of("posts", "log", 5).writtenAt(100);
  private static final WriteId OTHER = WriteId.of("users", "log", 7).writtenAt(100);
  private static final byte[] BODY = "1".getBytes(StandardCharsets.UTF_8);

  private static Lab lab;

  private final String name = "q" + UUID.randomUUID();
  private final RabbitMqInstrumentation news =
      RabbitMqInstrumentation.of("news").withExchange(name);
  private final BlockingQueue<Lineage> handled = new ArrayBlockingQueue<>(10);
  private Connection connection;
  private Channel channel;

  @BeforeAll
  static void startBroker() throws Exception {
    lab = Lab.start();
  }

  @AfterAll
  static void stopBroker() throws Exception {
    lab.close();
  }

  @BeforeEach
  void connect() throws Exception {
    connection = news.instrument(open());
    channel = connection.createChannel();
    channel.exchangeDeclare(name, "topic", false, true, null);
    channel.queueDeclare(name, false, false, true, null);
    channel.queueBind(name, name, "k");
  }

  private static Connection open() throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(lab.url());
    return factory.newConnection();
  }

  @AfterEach
  void disconnect() {
    connection.abort();
  }

  private Lineage handled() throws InterruptedException {
    return handled.poll(20, TimeUnit.SECONDS);
  }

  private void consume() throws Exception {
    channel.basicConsume(name, true, (tag, message) -> handled.add(Antipode.current()), tag -> {});
  }

  @Test
  void aConfirmedMessageIsInTheScopeOnceThePublisherKnows() throws Exception {
    channel.confirmSelect();
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  @Test
  void aMessageIsInTheLineageThatIsUsedNext() throws Exception {
    channel.confirmSelect();
    for (int round = 1; round <= 20; round++) {
      try (ScopeBlock request = Antipode.scope()) {
        channel.basicPublish(name, "k", null, BODY);
        assertThat(Antipode.current().writes())
            .singleElement()
            .extracting(WriteId::version)
            .isEqualTo((long) round);
      }
    }
  }

  @Test
  void aListenerOfConfirmsFindsTheMessageInTheScope() throws Exception {
    channel.confirmSelect();
    channel.clearConfirmListeners();
    try (ScopeBlock request = Antipode.scope()) {
      channel.addConfirmListener(
          (tag, multiple) -> handled.add(request.scope().lineage()), (tag, multiple) -> {});
      channel.basicPublish(name, "k", null, BODY);
      assertThat(handled().writes()).hasSize(1);
    }
  }

  @Test
  void aCallbackRunsInAScopeOfItsMessageAlone() throws Exception {
    channel.confirmSelect();
    consume();
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(handled()).isEqualTo(Antipode.current());
    }
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      channel.basicPublish(name, "k", null, BODY);
      assertThat(handled().writes()).hasSize(2).contains(OTHER).doesNotContain(CAUSE);
    }
  }

  @Test
  void aConsumerObjectIsCalledInTheScope() throws Exception {
    channel.basicConsume(
        name,
        true,
        new DefaultConsumer(channel) {
          @Override
          public void handleDelivery(
              String tag, Envelope envelope, BasicProperties properties, byte[] body) {
            handled.add(Antipode.current());
          }
        });
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", null, BODY);
    }
    assertThat(handled()).isEqualTo(Lineage.of(CAUSE));
  }

  @Test
  void aMessageThatIsTakenIsMergedIntoTheScope() throws Exception {
    channel.confirmSelect();
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000);
    }
    try (ScopeBlock request = Antipode.scope()) {
      GetResponse got = channel.basicGet(name, true);
      assertThat(got.getBody()).isEqualTo(BODY);
      assertThat(Antipode.current().writes()).hasSize(2).contains(CAUSE);
    }
  }

  @Test
  void membersAndALineageOfTheApplicationsStay() throws Exception {
    String handedOn = "antipode=" + Lineage.of(OTHER).serialize() + ",user=1";
    BasicProperties properties =
        new BasicProperties.Builder().headers(Map.of("baggage", handedOn)).build();
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", properties, BODY);
      GetResponse got = channel.basicGet(name, true);
      assertThat(got.getProps().getHeaders().get("baggage").toString()).endsWith(",user=1");
      assertThat(Antipode.current().writes()).containsExactly(CAUSE, OTHER);
    }
    assertThat(properties.getHeaders()).containsOnlyKeys("baggage");
  }

  @Test
  void whatNoQueueTakesEntersNothing() throws Exception {
    channel.confirmSelect();
    try (ScopeBlock request = Antipode.scope()) {
      channel.basicPublish(name, "another key", true, null, BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
    }
  }

  @Test
  void whatWasNotConfirmedWhenTheChannelEndsIsInDoubt() throws Exception {
    try (Connection all = RabbitMqInstrumentation.of("news").instrument(open());
        ScopeBlock request = Antipode.scope()) {
      Channel ended = all.createChannel();
      ended.confirmSelect();
      ended.basicPublish("no exchange of this name", "k", null, BODY); // Ends the channel.
      assertThatThrownBy(() -> ended.waitForConfirmsOrDie(20_000))
          .isInstanceOf(ShutdownSignalException.class);
      assertThat(Antipode.current().incomplete())
          .containsExactly(new Incomplete("news", "in_doubt"));
      assertThatThrownBy(() -> ended.basicPublish(name, "k", null, BODY))
          .isInstanceOf(AlreadyClosedException.class);
      assertThat(Antipode.current().writes()).isEmpty();
    }
  }

  private static BasicProperties own(int bytes) {
    return new BasicProperties.Builder().headers(Map.of("own", "x".repeat(bytes))).build();
  }

  private GetResponse got(int bytes) throws Exception {
    GetResponse got = channel.basicGet(name, true);
    assertThat(got.getProps().getHeaders().get("own").toString()).hasSize(bytes);
    return got;
  }

  @Test
  void aLineageIsCutToWhatItsFrameHasRoomFor() throws Exception {
    channel.confirmSelect();
    Lineage causes =
        IntStream.range(0, 20)
            .mapToObj(each -> Lineage.of(WriteId.of("posts", "log-" + each, 5).writtenAt(100)))
            .reduce(Lineage.empty(), Lineage::merge);
    for (int room : new int[] {400, 250}) {
      int own = connection.getFrameMax() - room;
      try (ScopeBlock request = Antipode.scope(causes)) {
        channel.basicPublish(name, "k", own(own), BODY);
        channel.waitForConfirmsOrDie(20_000);
        assertThat(Antipode.current().writes()).hasSize(21);
        assertThat(Antipode.current().incomplete()).isEmpty();
      }
      try (ScopeBlock consumer = Antipode.scope()) {
        assertThat(got(own).getProps().getHeaders())
            .containsOnlyKeys("own", "baggage", "antipode-write");
        assertThat(Antipode.current().writes()).hasSizeBetween(1, 20);
        assertThat(Antipode.current().incomplete()).extracting(Incomplete::reason).contains("size");
      }
    }
  }

  @Test
  void aMessageWhoseHeadersFillItsFrameIsSentWithoutItsLineage() throws Exception {
    channel.confirmSelect();
    int own = connection.getFrameMax() - 60;
    try (ScopeBlock request = Antipode.scope(Lineage.of(CAUSE))) {
      channel.basicPublish(name, "k", own(own), BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(Antipode.current())
          .isEqualTo(Lineage.of(CAUSE).marked(new Incomplete("news", "unsampled")));
      assertThat(got(own).getProps().getHeaders()).containsOnlyKeys("own");
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(Antipode.current().writes()).hasSize(2);
    }
  }

  @Test
  void whatTheClientCannotSendEntersNothingAndConfirmsGoOn() throws Exception {
    channel.confirmSelect();
    BasicProperties untyped =
        new BasicProperties.Builder().headers(Map.of("own", new Object())).build();
    try (ScopeBlock request = Antipode.scope()) {
      for (ThrowingCallable refused :
          List.<ThrowingCallable>of(
              () -> channel.basicPublish(name, "k".repeat(300), null, BODY),
              () -> channel.basicPublish(name, "k", untyped, BODY),
              () -> channel.basicPublish(name, "k", own(connection.getFrameMax()), BODY))) {
        assertThatThrownBy(refused).isInstanceOf(IllegalArgumentException.class);
      }
      assertThat(Antipode.current()).isEqualTo(Lineage.empty());
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000);
      assertThat(Antipode.current().incomplete()).isEmpty();
      assertThat(Antipode.current().writes()).extracting(WriteId::version).containsExactly(1L);
    }
  }

  @Test
  void aDryRunNamesTheLineThatPublished(@TempDir Path folder) throws Exception {
    channel.confirmSelect();
    Settings before = Settings.current();
    Set<String> own = Set.of(InstrumentedChannelTest.class.getName());
    Settings.configure(
        held -> before.withMode(Mode.DRY_RUN).withDryRunDir(folder).withAppPackages(own));
    try (ScopeBlock request = Antipode.scope()) {
      channel.basicPublish(name, "k", null, BODY);
      channel.waitForConfirmsOrDie(20_000); // Whose connection's thread records it.
    } finally {
      Settings.configure(held -> before);
    }
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(Files.readAllLines(files.findFirst().orElseThrow()))
          .filteredOn(line -> line.contains("\"kind\":\"write\""))
          .singleElement()
          .asString()
          .contains("io/antipode/rabbitmq/InstrumentedChannelTest.java");
    }
  }
}
