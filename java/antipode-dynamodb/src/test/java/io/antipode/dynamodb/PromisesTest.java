package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.dynamodb.PlainServer.Answer;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItemsResponse;

/** Records of promises, before a server that answers as each test says. */
class PromisesTest {
  private static final Pattern WRITES = Pattern.compile("\"writes\":\\{\"S\":\"([^\"]*)\"\\}");

  private static Promise promise() {
    try (ScopeBlock scope = Antipode.scope()) {
      return Antipode.promise("posts", Duration.ofMinutes(10));
    }
  }

  private static DynamoDbShim.Builder shim(PlainServer server) {
    return DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder()))
        .table("posts")
        .tableKey("posts", "id");
  }

  private static TransactWriteItem put(String table, String id) {
    return TransactWriteItem.builder()
        .put(put -> put.tableName(table).item(Map.of("id", AttributeValue.fromS(id))))
        .build();
  }

  /** Returns what the record of the only request names. */
  private static String named(PlainServer server) {
    assertThat(server.all())
        .extracting(PlainServer.Received::operation)
        .containsExactly("TransactWriteItems");
    return WRITES
        .matcher(server.all().get(0).body())
        .results()
        .map(found -> found.group(1))
        .findFirst()
        .orElseThrow();
  }

  private static String afterTransaction(
      Function<Promise, List<TransactWriteItem>> actions, String token) throws Exception {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server).tableKey("others", "owner", "id").register();
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      Promise promise = promise();
      TransactWriteItemsResponse unused =
          client.transactWriteItems(
              all ->
                  all.clientRequestToken(token)
                      .transactItems(shim.fulfil(actions.apply(promise), promise)));
      String named = named(server);
      if (!named.isEmpty()) {
        assertThat(Lineage.deserialize(named).writes())
            .containsExactlyInAnyOrderElementsOf(Antipode.current().writes());
      }
      return named;
    }
  }

  /** The record is no write of its own, and names all others. */
  @Test
  void aRecordNamesWhatItsTransactionWrites() throws Exception {
    String named = afterTransaction(promise -> List.of(put("posts", "1"), put("posts", "2")), null);
    assertThat(Lineage.deserialize(named).writes())
        .extracting(WriteId::key)
        .containsExactlyInAnyOrder("posts/id=1@us-east-1", "posts/id=2@us-east-1");
  }

  /** One that could not name all says nothing, and fulfils nothing. */
  @Test
  void aRecordThatCannotNameAllSaysNothing() throws Exception {
    assertThat(afterTransaction(promise -> List.of(put("posts", "1"), put("others", "2")), null))
        .isEmpty();
    assertThat(afterTransaction(promise -> List.of(put("posts", "1")), "mine")).isEmpty();
  }

  /** A value of Table 2 and the record are one transaction. */
  @Test
  void aValueFulfilsAPromise() throws Exception {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server).promiseTable("promises").register();
        ScopeBlock scope = Antipode.scope()) {
      Lineage written = shim.write("1", AttributeValue.fromS("hello"), Lineage.empty(), promise());
      assertThat(Lineage.deserialize(named(server))).isEqualTo(written);
      assertThat(server.all().get(0).body()).contains("\"TableName\":\"promises\"");
    }
  }

  /** Without its record a promise is waited for; with it, until all is there that it names. */
  @Test
  void aBarrierWaitsForWhatARecordNames() throws Exception {
    Promise promise = promise();
    WriteId write = WriteId.of("posts", "posts/id=1@eu-west-1", 7_343_308_800_000_000_010L);
    String record = "{\"Item\":{\"writes\":{\"S\":\"" + Lineage.of(write).serialize() + "\"}}}";
    String item = "{\"Item\":{\"_ap\":{\"N\":\"" + write.version() + "\"}}}";
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server).register()) {
      assertThat(waits(promise)).contains("not_yet");
      server.otherwise(
          body -> body.contains("antipode_promises") ? new Answer(200, record) : Answer.DONE);
      assertThat(waits(promise)).contains("not_yet");
      server.otherwise(body -> new Answer(200, body.contains("antipode_promises") ? record : item));
      Barriers.barrier(
          BarrierOptions.timeout(Duration.ofSeconds(20)).withLineage(lineage(promise)));
    }
  }

  /** A client that is not instrumented fulfils nothing, which is said. */
  @Test
  void aRecordThatNamesNothingIsExplained() throws Exception {
    try (PlainServer server = new PlainServer();
        DynamoDbShim shim = shim(server).register()) {
      server.otherwise(body -> new Answer(200, "{\"Item\":{\"writes\":{\"S\":\"\"}}}"));
      assertThat(waits(promise())).contains("is not instrumented");
    }
  }

  private static Lineage lineage(Promise promise) {
    return Lineage.builder().promise(promise).build();
  }

  private static String waits(Promise promise) {
    StringBuilder said = new StringBuilder();
    assertThatThrownBy(
            () ->
                Barriers.barrier(
                    BarrierOptions.timeout(Duration.ofSeconds(2)).withLineage(lineage(promise))))
        .isInstanceOfSatisfying(
            BarrierTimeoutException.class, error -> said.append(error.getMessage()));
    return said.toString();
  }
}
