package io.antipode.dynamodb;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.lab.Lab;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionResponse;
import software.amazon.awssdk.services.dynamodb.model.ParameterizedStatement;

/** Statements of PartiQL before an emulator, not before AWS; its streams copy no such writes. */
@Tag("lab")
class EmulatorTest {
  private static final String INSERT = "INSERT INTO \"posts\" VALUE {'text': 'a', 'id': ?}";
  private static final String UPDATE = "UPDATE \"posts\" SET text = 'b' WHERE id = ?";
  private static final String DELETE = "DELETE FROM \"posts\" WHERE id = ?";

  private static Lab lab;

  private final AttributeValue id = AttributeValue.fromS(UUID.randomUUID().toString());

  @BeforeAll
  static void start() throws IOException {
    lab = Lab.start("dynamodb");
  }

  @AfterAll
  static void stop() throws IOException {
    lab.close();
  }

  private static <B extends AwsClientBuilder<B, ?>> B here(B builder) {
    return builder
        .region(Region.US_EAST_1)
        .endpointOverride(URI.create(lab.url()))
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("testing", "testing")));
  }

  /** What is written enters the lineage by the stamp that the item has then. */
  private void writesAreNamed(DynamoDbClient client, BiConsumer<String, AttributeValue> execute) {
    try (DynamoDbClient plain = here(DynamoDbClient.builder()).build();
        ScopeBlock scope = Antipode.scope()) {
      for (String statement : List.of(INSERT, UPDATE)) {
        execute.accept(statement, id);
        Map<String, AttributeValue> stored =
            plain.getItem(get -> get.tableName("posts").key(Map.of("id", id))).item();
        assertThat(Antipode.current().writes())
            .extracting(WriteId::version)
            .containsExactly(Long.valueOf(stored.get("_ap").n()));
      }
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)));
      assertThat(
              client
                  .executeStatement(
                      s -> s.statement("SELECT * FROM \"posts\" WHERE id = ?").parameters(id))
                  .items())
          .containsExactly(Map.of("id", id, "text", AttributeValue.fromS("b")));
      execute.accept(DELETE, id);
      assertThat(Antipode.current().writes())
          .extracting(each -> Stamps.isDeletion(each.version()))
          .containsExactly(true);
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)));
      assertThat(Antipode.current().incomplete()).isEmpty();
    }
  }

  private static DynamoDbShim shim() {
    return DynamoDbShim.builder("posts", here(DynamoDbClient.builder())).register();
  }

  private static BatchStatementRequest each(String statement, AttributeValue key) {
    return BatchStatementRequest.builder().statement(statement).parameters(key).build();
  }

  @Test
  void statements() {
    try (DynamoDbShim shim = shim();
        DynamoDbClient client = shim.instrument(here(DynamoDbClient.builder()))) {
      writesAreNamed(
          client,
          (statement, key) -> {
            ExecuteStatementResponse unused =
                client.executeStatement(s -> s.statement(statement).parameters(key));
          });
    }
  }

  @Test
  void statementsOfABatch() {
    try (DynamoDbShim shim = shim();
        DynamoDbClient client = shim.instrument(here(DynamoDbClient.builder()))) {
      writesAreNamed(
          client,
          (statement, key) -> {
            BatchExecuteStatementResponse told =
                client.batchExecuteStatement(
                    all ->
                        all.statements(
                            each(UPDATE, AttributeValue.fromS("none")), each(statement, key)));
            assertThat(told.responses().get(0).error()).isNotNull();
          });
    }
  }

  @Test
  void statementsOfAnAsynchronousTransaction() {
    try (DynamoDbShim shim = shim();
        DynamoDbClient client = shim.instrument(here(DynamoDbClient.builder()));
        DynamoDbAsyncClient asynchronous = shim.instrument(here(DynamoDbAsyncClient.builder()))) {
      writesAreNamed(
          client,
          (statement, key) -> {
            ExecuteTransactionResponse unused =
                asynchronous
                    .executeTransaction(
                        all ->
                            all.transactStatements(
                                ParameterizedStatement.builder()
                                    .statement(statement)
                                    .parameters(key)
                                    .build()))
                    .join();
          });
    }
  }
}
