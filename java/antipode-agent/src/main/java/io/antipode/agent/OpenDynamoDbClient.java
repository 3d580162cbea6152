package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.dynamodb.DynamoDbShim;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.DeleteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.GetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.PutItemResponse;

/** Instrumented clients of the AWS SDK, one of each API: plain operations. */
final class OpenDynamoDbClient extends OpenClient {
  private final DynamoDbShim shim;
  private final DynamoDbClient client;
  private final DynamoDbAsyncClient asynchronous;
  private final boolean isAsynchronous;

  /** Opens both; {@code library} says by which it writes, and reads unless it is said. */
  OpenDynamoDbClient(JsonNode given) {
    shim = OpenDynamoDb.builder(given).register();
    client = shim.instrument(AwsClients.of(DynamoDbClient.builder(), given));
    asynchronous = shim.instrument(AwsClients.of(DynamoDbAsyncClient.builder(), given));
    isAsynchronous = given.path("library").asText().equals("async");
  }

  @Override
  public Shim shim() {
    return shim;
  }

  private static Map<String, AttributeValue> key(String key) {
    return Map.of("id", AttributeValue.fromS(key));
  }

  @Override
  void put(String key, String value) {
    Map<String, AttributeValue> item =
        Map.of("id", AttributeValue.fromS(key), "value", AttributeValue.fromS(value));
    PutItemResponse unused =
        isAsynchronous
            ? asynchronous.putItem(put -> put.tableName(OpenDynamoDb.TABLE).item(item)).join()
            : client.putItem(put -> put.tableName(OpenDynamoDb.TABLE).item(item));
  }

  @Override
  void remove(String key) {
    DeleteItemResponse unused =
        isAsynchronous
            ? asynchronous
                .deleteItem(delete -> delete.tableName(OpenDynamoDb.TABLE).key(key(key)))
                .join()
            : client.deleteItem(delete -> delete.tableName(OpenDynamoDb.TABLE).key(key(key)));
  }

  @Override
  @Nullable String get(String key) {
    return isAsynchronous
        ? readAsync(key).join().value()
        : text(client.getItem(get -> get.tableName(OpenDynamoDb.TABLE).key(key(key))));
  }

  @Override
  public CompletableFuture<Found> readAsync(String key) {
    return asynchronous
        .getItem(get -> get.tableName(OpenDynamoDb.TABLE).key(key(key)))
        .thenApply(got -> new Found(text(got), null));
  }

  private static @Nullable String text(GetItemResponse got) {
    return got.hasItem() ? OpenDynamoDb.text(got.item().get("value")) : null;
  }

  @Override
  public void close() {
    client.close();
    asynchronous.close();
    shim.close();
  }
}
