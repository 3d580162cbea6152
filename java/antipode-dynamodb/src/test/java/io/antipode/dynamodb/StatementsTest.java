package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.dynamodb.PlainServer.Answer;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.DynamoDbException;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.ParameterizedStatement;

/** Statements of PartiQL, before a server that answers as each test says. */
class StatementsTest {
  private static final String UPDATE = "UPDATE posts SET a = 'b' WHERE id = ?";
  private static final String DELETE = "DELETE FROM posts WHERE id = ?";
  private static final String TWO = "UPDATE posts SET a = 'b' WHERE id = '1' OR id = '2'";
  private static final Incomplete IN_DOUBT = new Incomplete("posts", "in_doubt");
  private static final Incomplete UNSAMPLED = new Incomplete("posts", "unsampled");

  /** What a test does with a client, and what its lineage is then. */
  private interface Use {
    void by(DynamoDbClient client);
  }

  private static DynamoDbShim shim(PlainServer server) {
    return DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder()))
        .tableKey("posts", "id")
        .register();
  }

  private static Lineage after(PlainServer server, Use use) {
    try (DynamoDbShim shim = shim(server);
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      use.by(client);
      return Antipode.current();
    }
  }

  private static AttributeValue id(int id) {
    return AttributeValue.fromS("" + id);
  }

  private static BatchStatementRequest each(String text, int id) {
    return BatchStatementRequest.builder().statement(text).parameters(id(id)).build();
  }

  private static ParameterizedStatement part(String text, int id) {
    return ParameterizedStatement.builder().statement(text).parameters(id(id)).build();
  }

  private static String sent(PlainServer server) {
    return server.all().get(0).body();
  }

  /** One request, with the stamp in the statement; the item's name and the stamp are the write. */
  @Test
  void aStatementIsStampedInItsOwnRequest() throws Exception {
    try (PlainServer server = new PlainServer()) {
      Lineage lineage =
          after(
              server,
              client -> client.executeStatement(s -> s.statement(UPDATE).parameters(id(1))));
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/id=1@us-east-1");
      assertThat(lineage.incomplete()).isEmpty();
      assertThat(sent(server))
          .contains("SET \\\"_ap\\\" = " + lineage.writes().get(0).version() + " SET a = 'b'");
    }
  }

  /** A deletion has nothing to set, and is later than what its request wrote before. */
  @Test
  void everyStatementOfATransactionIsAWrite() throws Exception {
    try (PlainServer server = new PlainServer()) {
      Lineage lineage =
          after(
              server,
              client ->
                  client.executeTransaction(
                      all -> all.transactStatements(part(UPDATE, 1), part(DELETE, 2))));
      assertThat(lineage.writes())
          .extracting(WriteId::key)
          .containsExactlyInAnyOrder("posts/id=1@us-east-1", "posts/id=2@us-east-1");
      assertThat(lineage.writes())
          .extracting(each -> Stamps.isDeletion(each.version()))
          .containsExactlyInAnyOrder(false, true);
      assertThat(sent(server)).contains("\"" + DELETE + "\"");
      assertThat(lineage.incomplete()).isEmpty();
    }
  }

  /** Its parameters must be the same in each attempt. */
  @Test
  void aTransactionWithATokenIsMarked() throws Exception {
    try (PlainServer server = new PlainServer()) {
      Lineage lineage =
          after(
              server,
              client ->
                  client.executeTransaction(
                      all -> all.clientRequestToken("mine").transactStatements(part(UPDATE, 1))));
      assertThat(lineage.incomplete()).containsExactly(UNSAMPLED);
      assertThat(sent(server)).doesNotContain("_ap");
    }
  }

  /** What a batch refused enters nothing; what failed at the service may have been done. */
  @Test
  void whatABatchRefusedEntersNothing() throws Exception {
    try (PlainServer server = new PlainServer()) {
      server.otherwise(
          body ->
              new Answer(
                  200,
                  "{\"Responses\":[{\"TableName\":\"posts\"},"
                      + "{\"Error\":{\"Code\":\"ConditionalCheckFailed\","
                      + "\"Item\":{\"id\":{\"S\":\"2\"},\"_ap\":{\"N\":\"12\"}}}},"
                      + "{\"TableName\":\"posts\"}]}"));
      Lineage lineage =
          after(
              server,
              client -> {
                List<BatchStatementResponse> told =
                    client
                        .batchExecuteStatement(
                            all ->
                                all.statements(each(UPDATE, 1), each(DELETE, 2), each(DELETE, 3)))
                        .responses();
                assertThat(told.get(1).error().item()).isEqualTo(Map.of("id", id(2)));
              });
      assertThat(lineage.writes())
          .extracting(WriteId::key)
          .containsExactlyInAnyOrder("posts/id=1@us-east-1", "posts/id=3@us-east-1");
      assertThat(lineage.incomplete()).isEmpty();
    }
    try (PlainServer server =
        new PlainServer(
            new Answer(200, "{\"Responses\":[{\"Error\":{\"Code\":\"InternalServerError\"}}]}"))) {
      Lineage lineage =
          after(server, client -> client.batchExecuteStatement(s -> s.statements(each(DELETE, 1))));
      assertThat(lineage.writes()).isEmpty();
      assertThat(lineage.incomplete()).containsExactly(IN_DOUBT);
    }
  }

  /**
   * Neither what an update modified besides its item, nor a reply that says less than it should.
   */
  @Test
  void noReplyShowsAStamp() throws Exception {
    String modified = "{\"Items\":[{\"_ap\":{\"N\":\"12\"}}]}";
    String read = "{\"Responses\":[{\"Item\":{\"id\":{\"S\":\"1\"},\"_ap\":{\"N\":\"12\"}}}]}";
    try (PlainServer server =
        new PlainServer(new Answer(200, modified), new Answer(200, read), new Answer(200, read))) {
      Lineage lineage =
          after(
              server,
              client -> {
                String returning = UPDATE + " RETURNING MODIFIED OLD *";
                assertThat(
                        client
                            .executeStatement(s -> s.statement(returning).parameters(id(1)))
                            .items())
                    .isEmpty();
                assertThat(Antipode.current().incomplete()).isEmpty();
                String select = "SELECT * FROM posts WHERE id = ?";
                for (String second : List.of(select, UPDATE)) {
                  assertThat(
                          client
                              .batchExecuteStatement(
                                  all -> all.statements(each(select, 1), each(second, 1)))
                              .responses()
                              .get(0)
                              .item())
                      .isEqualTo(Map.of("id", id(1)));
                }
              });
      assertThat(lineage.incomplete()).containsExactly(UNSAMPLED);
    }
  }

  /** What is not understood goes as it is; a read is no write. */
  @Test
  void whatIsNotUnderstoodIsMarked() throws Exception {
    try (PlainServer server = new PlainServer()) {
      Lineage read =
          after(
              server,
              client -> client.executeStatement(one -> one.statement("SELECT * FROM posts")));
      assertThat(read.isEmpty()).isTrue();
      Lineage written = after(server, client -> client.executeStatement(one -> one.statement(TWO)));
      assertThat(written.incomplete()).containsExactly(UNSAMPLED);
      assertThat(server.all().get(1).body()).contains("\"" + TWO + "\"");
      Lineage keyless =
          after(
              server,
              client ->
                  client.executeStatement(
                      one -> one.statement("UPDATE posts SET a = 'b' WHERE a = 'c'")));
      assertThat(keyless.incomplete()).containsExactly(UNSAMPLED);
    }
  }

  /** A transaction's check reads, and what it writes is known. */
  @Test
  void aCheckInATransactionWritesNothing() throws Exception {
    try (PlainServer server = new PlainServer()) {
      String check = "EXISTS(SELECT * FROM posts WHERE id = ?)";
      Lineage lineage =
          after(
              server,
              client ->
                  client.executeTransaction(
                      all -> all.transactStatements(part(check, 1), part(UPDATE, 2))));
      assertThat(lineage.writes()).extracting(WriteId::key).containsExactly("posts/id=2@us-east-1");
      assertThat(lineage.incomplete()).isEmpty();
    }
  }

  /** The key of a table that is only written by statements is asked for once, too. */
  @Test
  void theKeyOfATableIsAskedFor() throws Exception {
    String key = "{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}]}}";
    try (PlainServer server = new PlainServer(new Answer(200, key), Answer.DONE, Answer.DONE);
        DynamoDbShim shim =
            DynamoDbShim.builder("posts", server.client(DynamoDbClient.builder())).register();
        DynamoDbClient client = shim.instrument(server.client(DynamoDbClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      for (int id = 1; id <= 2; id++) {
        AttributeValue given = id(id);
        ExecuteStatementResponse unused =
            client.executeStatement(one -> one.statement(UPDATE).parameters(given));
      }
      assertThat(Antipode.current().writes()).hasSize(2);
      assertThat(server.all())
          .extracting(PlainServer.Received::operation)
          .containsExactly("DescribeTable", "ExecuteStatement", "ExecuteStatement");
    }
  }

  /** The asynchronous client's statements are of the request that made them. */
  @Test
  void anAsynchronousStatementShowsNoStamp() throws Exception {
    String item = "{\"Items\":[{\"id\":{\"S\":\"1\"},\"_ap\":{\"N\":\"12\"}}]}";
    try (PlainServer server = new PlainServer(new Answer(200, item));
        DynamoDbShim shim = shim(server);
        DynamoDbAsyncClient client = shim.instrument(server.client(DynamoDbAsyncClient.builder()));
        ScopeBlock scope = Antipode.scope()) {
      String returning = UPDATE + " RETURNING ALL OLD *";
      ExecuteStatementResponse told =
          client.executeStatement(one -> one.statement(returning).parameters(id(1))).join();
      assertThat(told.items()).containsExactly(Map.of("id", id(1)));
      assertThat(Antipode.current().writes())
          .extracting(WriteId::key)
          .containsExactly("posts/id=1@us-east-1");
    }
  }

  /** A refusal is none of ours to change, and leaves no doubt. */
  @Test
  void aRefusedStatementEntersNothing() throws Exception {
    try (PlainServer server = new PlainServer(Answer.refused(400, "DuplicateItemException"))) {
      Lineage lineage =
          after(
              server,
              client ->
                  assertThatThrownBy(
                          () ->
                              client.executeStatement(
                                  one -> one.statement("INSERT INTO posts VALUE {'id': '1'}")))
                      .isInstanceOf(DynamoDbException.class));
      assertThat(sent(server)).contains("VALUE {'_ap': ");
      assertThat(lineage.isEmpty()).isTrue();
    }
  }

  /**
   * With a barrier behind it a read of an index would be refused if consistent, and stale if not.
   */
  @Test
  void aStatementOfAnIndexIsRefusedAsItIs() {
    for (String text :
        List.of(
            "SELECT * FROM \"posts\".\"by-text\" WHERE \"text\" = 'a'",
            "select \"from\" from posts . \"by-text\" where text = 'x FROM y' -- what is this")) {
      ExecuteStatementRequest one = ExecuteStatementRequest.builder().statement(text).build();
      BatchStatementRequest part = BatchStatementRequest.builder().statement(text).build();
      BatchExecuteStatementRequest batch =
          BatchExecuteStatementRequest.builder().statements(part).build();
      assertThat(Consistent.refusal(one)).contains("'by-text'");
      assertThat(Consistent.refusal(batch)).contains("'by-text'");
      assertThat(Consistent.refusal(one.toBuilder().consistentRead(true).build())).isNull();
    }
  }

  /** Neither a path nor a text makes the name of an index. */
  @Test
  void aStatementOfATableIsConsistent() {
    for (String text :
        List.of(
            "SELECT * FROM posts WHERE a.b = ' FROM c.d'", "SELECT a.b FROM posts", "SELECT ")) {
      ExecuteStatementRequest one = ExecuteStatementRequest.builder().statement(text).build();
      assertThat(Consistent.refusal(one)).isNull();
    }
  }
}
