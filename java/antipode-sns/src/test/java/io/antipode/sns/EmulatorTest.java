package io.antipode.sns;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.lab.Lab;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Counts.Metric;
import io.antipode.runtime.Time;
import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sns.SnsAsyncClient;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sns.model.PublishBatchRequestEntry;
import software.amazon.awssdk.services.sns.model.PublishBatchResponse;
import software.amazon.awssdk.services.sns.model.PublishResponse;
import software.amazon.awssdk.services.sns.model.SubscribeResponse;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchResponse;
import software.amazon.awssdk.services.sqs.model.SendMessageResponse;

/** Real clients over an emulator, not over AWS. */
@Tag("lab")
class EmulatorTest {
  private static final WriteId OTHER = WriteId.of("else", "log", 7).writtenAt(Time.hour());
  private static final WriteId FURTHER = WriteId.of("further", "log", 8).writtenAt(Time.hour());
  private static final Incomplete SIZE = new Incomplete("news", "size");
  private static final int SOON_S = 10;

  private static Lab lab;

  private SnsShim news;
  private SqsClient plain;
  private SqsClient sqs;
  private SnsClient sns;
  private String queue;

  @BeforeAll
  static void start() throws IOException {
    lab = Lab.start("sns");
  }

  @AfterAll
  static void stop() throws IOException {
    lab.close();
  }

  @BeforeEach
  void open() {
    news = SnsShim.builder("news").register();
    plain = client(SqsClient.builder()).build();
    sqs = news.instrument(client(SqsClient.builder()));
    sns = news.instrument(client(SnsClient.builder()));
    queue = plain.createQueue(one -> one.queueName(name())).queueUrl();
  }

  @AfterEach
  void close() {
    sqs.close();
    sns.close();
    plain.close();
    news.close();
  }

  private static String name() {
    return "q" + UUID.randomUUID();
  }

  private static <B extends AwsClientBuilder<B, ?>> B client(B builder) {
    return builder
        .region(Region.US_EAST_1)
        .endpointOverride(URI.create(lab.url()))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }

  private static MessageAttributeValue text(String value) {
    return MessageAttributeValue.builder().dataType("String").stringValue(value).build();
  }

  /** Returns the next message of the queue, as the application is shown it. */
  private Message received() {
    return sqs.receiveMessage(
            one -> one.queueUrl(queue).waitTimeSeconds(SOON_S).messageAttributeNames("mine"))
        .messages()
        .get(0);
  }

  private List<WriteId> causes(Message message) {
    try (ScopeBlock handling = news.message(message)) {
      return Antipode.current().writes();
    }
  }

  private void send(Map<String, MessageAttributeValue> attributes) {
    SendMessageResponse unused =
        sqs.sendMessage(
            one -> one.queueUrl(queue).messageBody("hello").messageAttributes(attributes));
  }

  /** Its consumer depends on what its publisher's request did, and is shown its own alone. */
  @Test
  void aMessageCarriesItsCauses() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      send(Map.of("mine", text("x")));
      assertThat(Antipode.current().writes()).containsExactly(OTHER);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
    Message message = received();
    assertThat(message.body()).isEqualTo("hello");
    assertThat(message.messageAttributes()).containsOnlyKeys("mine");
    assertThat(causes(message)).containsExactly(OTHER);
    assertThat(causes(message.toBuilder().body("changed").build())).containsExactly(OTHER);
  }

  /** Who opens the scope may have another shim than the client: a framework makes one of each. */
  @Test
  void aMessageIsHandledByAnotherShim() {
    SqsClient bean = news.instrument(plain);
    try (SnsShim other = SnsShim.builder("news").register()) {
      try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
        SendMessageResponse unused =
            bean.sendMessage(one -> one.queueUrl(queue).messageBody("hello"));
      }
      Message message =
          bean.receiveMessage(one -> one.queueUrl(queue).waitTimeSeconds(SOON_S)).messages().get(0);
      assertThat(message.hasMessageAttributes()).isFalse();
      try (ScopeBlock handling = other.message(message)) {
        assertThat(Antipode.current().writes()).containsExactly(OTHER);
      }
    }
  }

  /** Whoever names the attribute is shown it, such as to send the message on. */
  @Test
  void theAttributeIsShownToWhomItIsNamedBy() {
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      send(Map.of());
    }
    Message message =
        sqs.receiveMessage(
                one ->
                    one.queueUrl(queue).waitTimeSeconds(SOON_S).messageAttributeNames("antipode"))
            .messages()
            .get(0);
    assertThat(message.messageAttributes()).containsOnlyKeys("antipode");
    try (ScopeBlock request = Antipode.scope(Lineage.of(FURTHER))) {
      send(message.messageAttributes());
    }
    assertThat(causes(received())).containsExactlyInAnyOrder(OTHER, FURTHER);
  }

  /** A topic delivers the attribute raw, or in an envelope. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPublicationCarriesItsCauses(boolean isRaw) {
    String topic = sns.createTopic(one -> one.name(name())).topicArn();
    String arn =
        plain
            .getQueueAttributes(
                one -> one.queueUrl(queue).attributeNames(QueueAttributeName.QUEUE_ARN))
            .attributes()
            .get(QueueAttributeName.QUEUE_ARN);
    SubscribeResponse unused =
        sns.subscribe(
            one ->
                one.topicArn(topic)
                    .protocol("sqs")
                    .endpoint(arn)
                    .attributes(Map.of("RawMessageDelivery", "" + isRaw)));
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      PublishResponse published = sns.publish(one -> one.topicArn(topic).message("hello"));
      assertThat(published.messageId()).isNotNull();
      assertThat(causes(received())).containsExactly(OTHER);
      PublishBatchResponse batch =
          sns.publishBatch(
              several ->
                  several
                      .topicArn(topic)
                      .publishBatchRequestEntries(
                          PublishBatchRequestEntry.builder().id("1").message("again").build()));
      assertThat(batch.successful()).hasSize(1);
    }
    assertThat(causes(received())).containsExactly(OTHER);
  }

  /** With ten attributes of the application's ours stays out, and says so. */
  @Test
  void aMessageThatIsFullGoesWithout() {
    Map<String, MessageAttributeValue> ten = new HashMap<>();
    for (int each = 0; each < 10; each++) {
      ten.put("a" + each, text("x"));
    }
    Metric dropped = new Metric("baggage_dropped", "news");
    long before = Counts.all().getOrDefault(dropped, 0L);
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      send(ten);
      assertThat(Antipode.current().incomplete()).containsExactly(SIZE);
    }
    assertThat(Counts.all()).containsEntry(dropped, before + 1);
    assertThat(causes(received())).isEmpty();
  }

  /** All of a batch together have the room of one message. */
  @Test
  void aBatchThatIsFullGoesWithout() {
    String half = "x".repeat(131_000);
    SendMessageBatchRequestEntry.Builder entry =
        SendMessageBatchRequestEntry.builder().messageBody(half);
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      SendMessageBatchResponse sent =
          sqs.sendMessageBatch(
              several ->
                  several.queueUrl(queue).entries(entry.id("1").build(), entry.id("2").build()));
      assertThat(sent.successful()).hasSize(2);
      assertThat(Antipode.current().incomplete()).isEmpty();
      sent =
          sqs.sendMessageBatch(
              several ->
                  several
                      .queueUrl(queue)
                      .entries(
                          entry.id("1").build(),
                          entry.id("2").messageBody(half + "x".repeat(130)).build()));
      assertThat(sent.successful()).hasSize(2);
      assertThat(Antipode.current().incomplete()).containsExactly(SIZE);
    }
  }

  /** What was not deleted comes again, with its causes; so do those of a queue in order. */
  @Test
  void aRedeliveredMessageCarriesItsCauses() {
    queue =
        plain
            .createQueue(
                one ->
                    one.queueName(name() + ".fifo")
                        .attributes(
                            Map.of(
                                QueueAttributeName.FIFO_QUEUE, "true",
                                QueueAttributeName.CONTENT_BASED_DEDUPLICATION, "true",
                                QueueAttributeName.VISIBILITY_TIMEOUT, "0")))
            .queueUrl();
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      SendMessageResponse unused =
          sqs.sendMessage(one -> one.queueUrl(queue).messageBody("hello").messageGroupId("g"));
    }
    assertThat(causes(received())).containsExactly(OTHER);
    assertThat(causes(received())).containsExactly(OTHER);
  }

  /** The asynchronous clients do the same, in threads of the SDK's. */
  @Test
  void asynchronousClientsAreCovered() {
    try (SqsAsyncClient client = news.instrument(client(SqsAsyncClient.builder()));
        SnsAsyncClient topics = news.instrument(client(SnsAsyncClient.builder()))) {
      try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
        SendMessageResponse unused =
            client.sendMessage(one -> one.queueUrl(queue).messageBody("hello")).join();
      }
      Message message =
          client
              .receiveMessage(one -> one.queueUrl(queue).waitTimeSeconds(SOON_S))
              .join()
              .messages()
              .get(0);
      assertThat(message.hasMessageAttributes()).isFalse();
      assertThat(causes(message)).containsExactly(OTHER);
      assertThat(topics.listTopics().join().topics()).isNotNull();
    }
  }

  /** A message of a client without the shim starts an empty scope, whatever is open here. */
  @Test
  void aMessageOfOthersDependsOnNothing() {
    SendMessageResponse unused = plain.sendMessage(one -> one.queueUrl(queue).messageBody("hello"));
    try (ScopeBlock request = Antipode.scope(Lineage.of(OTHER))) {
      assertThat(causes(received())).isEmpty();
    }
  }

  /** It says that it depends on nothing: nobody knows its request. */
  @Test
  void aPublicationOutsideOfAScopeIsCounted() {
    Metric unscoped = new Metric("unscoped_write", "news");
    long before = Counts.all().getOrDefault(unscoped, 0L);
    send(Map.of());
    assertThat(Counts.all()).containsEntry(unscoped, before + 1);
  }
}
