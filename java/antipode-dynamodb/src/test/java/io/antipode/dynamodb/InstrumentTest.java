package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.dynamodb.PlainServer.Answer;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.enhanced.dynamodb.DynamoDbEnhancedClient;
import software.amazon.awssdk.enhanced.dynamodb.Key;
import software.amazon.awssdk.enhanced.dynamodb.TableSchema;
import software.amazon.awssdk.enhanced.dynamodb.mapper.annotations.DynamoDbBean;
import software.amazon.awssdk.enhanced.dynamodb.mapper.annotations.DynamoDbPartitionKey;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.ConditionalCheckFailedException;
import software.amazon.awssdk.services.dynamodb.model.DynamoDbException;
import software.amazon.awssdk.services.dynamodb.model.PutItemResponse;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.WriteRequest;

/** Clients of the SDK, instrumented, before a server that answers as each test says. */
class InstrumentTest {
  private static final Map<String, AttributeValue> POST =
      Map.of("id", AttributeValue.fromS("1"), "text", AttributeValue.fromS("hello"));
  private static final Incomplete IN_DOUBT = new Incomplete("posts", "in_doubt");
  private static final Incomplete UNSAMPLED = new Incomplete("posts", "unsampled");

  private static DynamoDbShim shim(PlainServer server) {
    return DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder()))
        .table("posts")
        .tableKey("posts", "id")
        .register();
  }

  /** What a test does with a client, and what its lineage is then. */
  private interface Use {
    void by(DynamoDbClient client) throws Exception;
  }

  private static Lineage after(PlainServer server, Use use) throws Exception {
    try (DynamoDbShim shim = shim(server);
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      use.by(client);
      return Antipode.current();
    }
  }

  private static void put(DynamoDbClient client) {
    PutItemResponse unused = client.putItem(put -> put.tableName("posts").item(POST));
  }

  /** One request, with the stamp by value; the item's name and the stamp are the write. */
  @Test
  void aPutIsStampedInItsOwnRequest() throws Exception {
    try (PlainServer server = new PlainServer()) {
      Lineage lineage = after(server, InstrumentTest::put);
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/id=1@us-east-1");
      assertThat(server.all()).hasSize(1);
      assertThat(server.all().get(0).body())
          .contains("\"_ap\":{\"N\":\"" + lineage.writes().get(0).version() + "\"}");
      assertThat(lineage.incomplete()).isEmpty();
    }
  }

  /** What is stored for the library alone is shown to nobody. */
  @Test
  void aReplyDoesNotShowTheStamp() throws Exception {
    String item = "{\"id\":{\"S\":\"1\"},\"_ap\":{\"N\":\"12\"},\"_apl\":{\"S\":\"1\"}}";
    try (PlainServer server =
        new PlainServer(
            new Answer(200, "{\"Item\":" + item + "}"),
            new Answer(200, "{\"Items\":[" + item + "],\"Count\":1}"),
            new Answer(200, "{\"Attributes\":{\"_ap\":{\"N\":\"12\"}}}"))) {
      Lineage unused =
          after(
              server,
              client -> {
                Map<String, AttributeValue> key = Map.of("id", AttributeValue.fromS("1"));
                assertThat(client.getItem(get -> get.tableName("posts").key(key)).item())
                    .isEqualTo(key);
                assertThat(client.scanPaginator(scan -> scan.tableName("posts")).items())
                    .containsExactly(key);
                assertThat(
                        client
                            .updateItem(
                                update ->
                                    update.tableName("posts").key(key).returnValues("UPDATED_NEW"))
                            .hasAttributes())
                    .isFalse();
              });
    }
  }

  /** The item that a failed condition shows is the application's, too. */
  @Test
  void aRefusalDoesNotShowTheStampAndLeavesNoDoubt() throws Exception {
    String refusal =
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","
            + "\"Item\":{\"id\":{\"S\":\"1\"},\"_ap\":{\"N\":\"12\"}}}";
    try (PlainServer server = new PlainServer(new Answer(400, refusal))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(() -> put(client))
                      .isInstanceOfSatisfying(
                          ConditionalCheckFailedException.class,
                          error -> assertThat(error.item()).containsOnlyKeys("id")));
      assertThat(lineage.isEmpty()).isTrue();
    }
  }

  /** What a batch leaves undone enters nothing, and comes back as the application gave it. */
  @Test
  void whatABatchLeavesEntersNothing() throws Exception {
    try (PlainServer server = new PlainServer()) {
      WriteRequest put = WriteRequest.builder().putRequest(one -> one.item(POST)).build();
      WriteRequest delete =
          WriteRequest.builder()
              .deleteRequest(one -> one.key(Map.of("id", AttributeValue.fromS("2"))))
              .build();
      server.answer(
          body -> {
            String stamp = body.replaceAll("(?s).*\"_ap\":\\{\"N\":\"(\\d+)\".*", "$1");
            return new Answer(
                200,
                "{\"UnprocessedItems\":{\"posts\":[{\"PutRequest\":{\"Item\":{\"id\":{\"S\":\"1\"},"
                    + "\"text\":{\"S\":\"hello\"},\"_ap\":{\"N\":\""
                    + stamp
                    + "\"}}}}]}}");
          });
      Lineage lineage =
          after(
              server,
              client ->
                  assertThat(
                          client
                              .batchWriteItem(
                                  batch ->
                                      batch.requestItems(Map.of("posts", List.of(put, delete))))
                              .unprocessedItems())
                      .isEqualTo(Map.of("posts", List.of(put))));
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/id=2@us-east-1");
    }
  }

  /** Of two puts that are equal each has no stamp of its own, by which they would differ. */
  @Test
  void aBatchThatNamesAnItemTwiceIsRefused() throws Exception {
    try (PlainServer server = new PlainServer(Answer.refused(400, "ValidationException"))) {
      WriteRequest put = WriteRequest.builder().putRequest(one -> one.item(POST)).build();
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(
                          () ->
                              client.batchWriteItem(
                                  batch -> batch.requestItems(Map.of("posts", List.of(put, put)))))
                      .isInstanceOf(DynamoDbException.class));
      assertThat(lineage.isEmpty()).isTrue();
      assertThat(server.all().get(0).body()).doesNotContain("_ap");
    }
  }

  /** A transaction with a token of the application's must stay as it is. */
  @Test
  void aTransactionWithATokenIsMarked() throws Exception {
    try (PlainServer server = new PlainServer()) {
      TransactWriteItem action =
          TransactWriteItem.builder().put(put -> put.tableName("posts").item(POST)).build();
      Lineage lineage =
          after(
              server,
              client ->
                  client.transactWriteItems(
                      all -> all.clientRequestToken("mine").transactItems(action)));
      assertThat(lineage.incomplete()).containsExactly(UNSAMPLED);
      assertThat(server.all().get(0).body()).doesNotContain("_ap");
    }
  }

  /**
   * An attempt before the last may have been done: the refusal of the last proves nothing of it.
   */
  @Test
  void anAttemptThatFailedAtTheServiceLeavesDoubt() throws Exception {
    try (PlainServer server =
        new PlainServer(
            Answer.refused(500, "InternalServerError"),
            Answer.refused(400, "ConditionalCheckFailedException"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(() -> put(client)).isInstanceOf(DynamoDbException.class));
      assertThat(server.all()).hasSize(2);
      assertThat(lineage.incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /** A refusal that was repeated with success is none. */
  @Test
  void aThrottledAttemptLeavesNoDoubt() throws Exception {
    try (PlainServer server =
        new PlainServer(
            Answer.refused(400, "ThrottlingException"),
            Answer.refused(400, "ConditionalCheckFailedException"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(() -> put(client)).isInstanceOf(DynamoDbException.class));
      assertThat(server.all()).hasSize(2);
      assertThat(lineage.isEmpty()).isTrue();
    }
  }

  /** The enhanced client sends what the client under it sends. */
  @Test
  void theEnhancedClientIsCovered() throws Exception {
    try (PlainServer server =
        new PlainServer(
            Answer.DONE,
            new Answer(
                200,
                "{\"Item\":{\"id\":{\"S\":\"1\"},\"text\":{\"S\":\"hello\"},"
                    + "\"_ap\":{\"N\":\"12\"}}}"))) {
      Lineage lineage =
          after(
              server,
              client -> {
                var posts =
                    DynamoDbEnhancedClient.builder()
                        .dynamoDbClient(client)
                        .build()
                        .table("posts", TableSchema.fromBean(Post.class));
                Post post = new Post();
                post.setId("1");
                posts.putItem(post);
                assertThat(posts.getItem(Key.builder().partitionValue("1").build()).getId())
                    .isEqualTo("1");
              });
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/id=1@us-east-1");
      assertThat(server.all().get(0).body()).contains("\"_ap\"");
    }
  }

  /** A bean of the enhanced client. */
  @DynamoDbBean
  public static class Post {
    private String id;

    @DynamoDbPartitionKey
    public String getId() {
      return id;
    }

    public void setId(String id) {
      this.id = id;
    }
  }

  /** The SDK reports to no interceptor that a future was cancelled. */
  @Test
  void aCancelledWriteIsInDoubt() throws Exception {
    try (PlainServer server = new PlainServer(Answer.NONE);
        DynamoDbShim shim = shim(server);
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      CompletableFuture<PutItemResponse> put =
          client.putItem(one -> one.tableName("posts").item(POST));
      assertThat(server.next().operation()).isEqualTo("PutItem");
      assertThat(Antipode.current().isEmpty()).isTrue();
      put.cancel(true);
      assertThat(Antipode.current().incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /** A read that nobody waits for any more wrote nothing. */
  @Test
  void aCancelledReadLeavesNoDoubt() throws Exception {
    try (PlainServer server = new PlainServer(Answer.NONE);
        DynamoDbShim shim = shim(server);
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      var got =
          client.getItem(
              one -> one.tableName("posts").key(Map.of("id", AttributeValue.fromS("1"))));
      assertThat(server.next().operation()).isEqualTo("GetItem");
      got.cancel(true);
      assertThat(Antipode.current().isEmpty()).isTrue();
    }
  }

  /** The reply comes in a thread of the SDK's; the write is the request's that made the call. */
  @Test
  void anAsynchronousWriteEntersTheScopeThatItWasMadeIn() throws Exception {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server);
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      PutItemResponse unused = client.putItem(one -> one.tableName("posts").item(POST)).join();
      assertThat(Antipode.current().writes()).hasSize(1);
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  /** What follows a call in its future is of the same request, in whichever thread it runs. */
  @Test
  void whatFollowsAnAsynchronousWriteIsOfItsRequest() throws Exception {
    Map<String, AttributeValue> other = Map.of("id", AttributeValue.fromS("2"));
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server);
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      PutItemResponse unused =
          client
              .putItem(one -> one.tableName("posts").item(POST))
              .thenApply(reply -> reply)
              .thenComposeAsync(reply -> client.putItem(one -> one.tableName("posts").item(other)))
              .join();
      assertThat(Antipode.current().writes()).hasSize(2);
    }
  }

  /** No thread of the application's waits until its region shows what a barrier wants. */
  @Test
  void anAsynchronousReadReturnsWhileItIsHeldBack() throws Exception {
    WriteId written = WriteId.of("posts", "posts/id=1@eu-west-1", 7_343_308_800_000_000_010L);
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim =
            DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder()))
                .readsFrom(ReadsFrom.REPLICA)
                .register();
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope(Lineage.of(written))) {
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)).atRead());
      var got =
          client.getItem(
              one -> one.tableName("posts").key(Map.of("id", AttributeValue.fromS("1"))));
      assertThat(server.next().body()).contains("ProjectionExpression");
      assertThat(got).isNotDone();
      String shown =
          "{\"Item\":{\"id\":{\"S\":\"1\"},\"_ap\":{\"N\":\"" + written.version() + "\"}}}";
      server.otherwise(body -> new Answer(200, shown));
      assertThat(got.get(20, TimeUnit.SECONDS).item()).containsOnlyKeys("id");
      assertThat(server.all()).anyMatch(InstrumentTest::isConsistentRead);
    }
  }

  private static boolean isConsistentRead(PlainServer.Received received) {
    return received.body().contains("\"ConsistentRead\":true")
        && !received.body().contains("ProjectionExpression");
  }

  /** The key of a table is asked for once; a put whose item is not known marks the lineage. */
  @Test
  void aTableWhoseKeyMayNotBeAskedForIsMarked() throws Exception {
    try (PlainServer server =
            new PlainServer(Answer.refused(400, "AccessDeniedException"), Answer.DONE);
        DynamoDbShim shim =
            DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder())).register();
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      put(client);
      assertThat(server.all())
          .extracting(PlainServer.Received::operation)
          .containsExactly("DescribeTable", "PutItem");
      assertThat(Antipode.current().incomplete()).containsExactly(UNSAMPLED);
    }
  }

  /** A put waits for the key as long as for itself: a cold process or a busy service is slow. */
  @Test
  void aTableWhoseKeyIsSaidLateIsNotMarked() throws Exception {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim =
            DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder())).register();
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      server.answer(body -> Answer.refused(500, "InternalServerError"));
      server.answer(
          body ->
              new Answer(
                  200,
                  "{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}]}}"));
      put(client);
      assertThat(Antipode.current().incomplete()).isEmpty();
      assertThat(Antipode.current().writes()).hasSize(1);
    }
  }

  /** One builder may make the shim's client, and several of the application's. */
  @Test
  void aBuilderStaysAsItWas() throws Exception {
    try (PlainServer server =
        new PlainServer(Answer.refused(400, "ConditionalCheckFailedException"), Answer.DONE)) {
      var builder = server.client(DynamoDbClient.builder());
      try (DynamoDbShim shim =
              DynamoDbShim.builder("posts", builder).tableKey("posts", "id").register();
          DynamoDbClient first = shim.instrument(builder);
          DynamoDbClient second = shim.instrument(builder);
          ScopeBlock scope = Antipode.scope()) {
        assertThatThrownBy(() -> put(first)).isInstanceOf(DynamoDbException.class);
        assertThat(Antipode.current().isEmpty()).isTrue();
        put(second);
        assertThat(Antipode.current().writes()).hasSize(1);
      }
    }
  }

  /** What is written elsewhere would be named after the wrong region. */
  @Test
  void aClientOfAnotherRegionIsRefused() throws IOException {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server)) {
      var other = server.client(DynamoDbClient.builder()).region(Region.EU_WEST_1);
      assertThatThrownBy(() -> shim.instrument(other))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("a shim for each region");
    }
  }
}
