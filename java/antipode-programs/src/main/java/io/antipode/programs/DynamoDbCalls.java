package io.antipode.programs;

import io.antipode.barrier.ReadsFrom;
import io.antipode.dynamodb.DynamoDbShim;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.Put;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.WriteRequest;

/** The client of DynamoDB. */
final class DynamoDbCalls implements Calls {
  private static final String TABLE = "posts";
  private static final String ABSENT = "attribute_not_exists(id)";

  private final DynamoDbShim near;
  private final DynamoDbShim far;
  private final DynamoDbAsyncClient writes;
  private final DynamoDbAsyncClient reads;
  private final DynamoDbClient plain;

  DynamoDbCalls(String url, String otherUrl) {
    near =
        DynamoDbShim.builder("posts", Regions.home(DynamoDbClient.builder(), url))
            .region(Regions.AWAY, URI.create(otherUrl))
            .register();
    far =
        DynamoDbShim.builder("posts", Regions.away(DynamoDbClient.builder(), otherUrl))
            .region(Regions.HOME, URI.create(url))
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    writes = near.instrument(Regions.home(DynamoDbAsyncClient.builder(), url));
    reads = far.instrument(Regions.away(DynamoDbAsyncClient.builder(), otherUrl));
    plain = Regions.away(DynamoDbClient.builder(), otherUrl).build();
  }

  private static Map<String, AttributeValue> item(String key, long number) {
    return Map.of(
        "id", AttributeValue.fromS(key), "v", AttributeValue.fromN(Long.toString(number)));
  }

  private static Map<String, AttributeValue> key(String key) {
    return Map.of("id", AttributeValue.fromS(key));
  }

  @Override
  public Made write(Random random, List<String> keys, long number) {
    String key = keys.get(random.nextInt(keys.size()));
    Left left = new Left(key, number, true);
    return switch (random.nextInt(7)) {
      case 0, 1 ->
          new Made(
              "put", writes.putItem(one -> one.tableName(TABLE).item(item(key, number))), left);
      case 2 ->
          new Made(
              "put if absent",
              writes.putItem(
                  one -> one.tableName(TABLE).item(item(key, number)).conditionExpression(ABSENT)),
              left);
      case 3 ->
          new Made(
              "update",
              writes.updateItem(
                  one ->
                      one.tableName(TABLE)
                          .key(key(key))
                          .updateExpression("SET v = :v")
                          .expressionAttributeValues(
                              Map.of(":v", AttributeValue.fromN(Long.toString(number))))),
              left);
      case 4 ->
          new Made(
              "delete",
              writes.deleteItem(one -> one.tableName(TABLE).key(key(key))),
              new Left(key, number, false));
      case 5 -> batch(keys, number);
      default -> transaction(random, keys, number);
    };
  }

  private Made batch(List<String> keys, long number) {
    List<WriteRequest> puts =
        keys.stream()
            .map(
                each ->
                    WriteRequest.builder().putRequest(put -> put.item(item(each, number))).build())
            .toList();
    return new Made(
        "batch",
        writes.batchWriteItem(all -> all.requestItems(Map.of(TABLE, puts))),
        all(keys, number));
  }

  private Made transaction(Random random, List<String> keys, long number) {
    String condition = random.nextInt(3) == 0 ? ABSENT : null;
    List<TransactWriteItem> puts =
        keys.stream()
            .map(
                each ->
                    Put.builder()
                        .tableName(TABLE)
                        .item(item(each, number))
                        .conditionExpression(condition)
                        .build())
            .map(put -> TransactWriteItem.builder().put(put).build())
            .toList();
    return new Made(
        "transaction",
        writes.transactWriteItems(all -> all.transactItems(puts)),
        all(keys, number));
  }

  private static List<Left> all(List<String> keys, long number) {
    return keys.stream().map(each -> new Left(each, number, true)).toList();
  }

  @Override
  public Made other(Random random, String key) {
    return switch (random.nextInt(4)) {
      case 0 ->
          new Made("no table", writes.putItem(one -> one.tableName("no_such").item(item(key, 1))));
      case 1 ->
          new Made(
              "no expression",
              writes.updateItem(one -> one.tableName(TABLE).key(key(key)).updateExpression("SET")));
      case 2 -> new Made("get", writes.getItem(one -> one.tableName(TABLE).key(key(key))));
      default -> new Made("scan", writes.scan(one -> one.tableName(TABLE).limit(3)));
    };
  }

  @Override
  public CompletableFuture<@Nullable Long> read(String key) {
    return reads
        .getItem(one -> one.tableName(TABLE).key(key(key)))
        .thenApply(reply -> number(reply.item()));
  }

  @Override
  public @Nullable Long shown(String key) {
    return number(
        plain.getItem(one -> one.tableName(TABLE).key(key(key)).consistentRead(true)).item());
  }

  private static @Nullable Long number(Map<String, AttributeValue> item) {
    AttributeValue found = item.get("v");
    return found == null ? null : Long.valueOf(found.n());
  }

  @Override
  public void close() {
    plain.close();
    reads.close();
    writes.close();
    far.close();
    near.close();
  }
}
