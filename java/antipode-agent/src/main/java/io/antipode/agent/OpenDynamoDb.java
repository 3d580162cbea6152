package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.Antipode;
import io.antipode.barrier.Shim;
import io.antipode.dynamodb.DynamoDbShim;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItemsResponse;

/** A shim of DynamoDB. */
final class OpenDynamoDb implements OpenShim {
  static final String TABLE = "posts";

  private final JsonNode given;
  private final DynamoDbShim shim;

  OpenDynamoDb(JsonNode given) {
    this.given = given;
    shim = builder(given).register();
  }

  static DynamoDbShim.Builder builder(JsonNode given) {
    return AwsClients.described(
        DynamoDbShim.builder(
                Values.text(given, "datastore"), AwsClients.of(DynamoDbClient.builder(), given))
            .table(Values.argument(given, "server").path("table").asText(TABLE)),
        given);
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  public Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils) {
    return shim.write(
        key, AttributeValue.fromS(value), lineage == null ? Antipode.current() : lineage, fulfils);
  }

  @Override
  public Lineage delete(String key, @Nullable Lineage lineage) {
    return shim.delete(key, lineage == null ? Antipode.current() : lineage);
  }

  @Override
  public Found read(String key) {
    return text(shim.read(key));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return shim.readAsync(key, OpenBytes.READING).thenApply(OpenDynamoDb::text);
  }

  private static Found text(DynamoDbShim.Found found) {
    return new Found(text(found.value()), found.lineage());
  }

  /** Returns a value that was written as a text here, or as bytes by another library. */
  static @Nullable String text(@Nullable AttributeValue value) {
    if (value == null) {
      return null;
    }
    return value.b() == null ? value.s() : value.b().asUtf8String();
  }

  @Override
  public void rolledBack(String key, String value, Promise fulfils) {
    TransactWriteItem put =
        TransactWriteItem.builder()
            .put(
                one ->
                    one.tableName(TABLE)
                        .item(
                            Map.of(
                                "id",
                                AttributeValue.fromS(key),
                                "value",
                                AttributeValue.fromS(value))))
            .build();
    TransactWriteItem missing =
        TransactWriteItem.builder()
            .conditionCheck(
                check ->
                    check
                        .tableName(TABLE)
                        .key(Map.of("id", AttributeValue.fromS(key + "-missing")))
                        .conditionExpression("attribute_exists(id)"))
            .build();
    try (DynamoDbClient client = shim.instrument(AwsClients.of(DynamoDbClient.builder(), given))) {
      TransactWriteItemsResponse unused =
          client.transactWriteItems(
              all -> all.transactItems(shim.fulfil(List.of(put, missing), fulfils)));
    }
  }

  @Override
  public void close() {
    shim.close();
  }
}
