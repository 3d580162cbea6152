package io.antipode.dynamodb;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchGetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementError;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchWriteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.CancellationReason;
import software.amazon.awssdk.services.dynamodb.model.ConditionalCheckFailedException;
import software.amazon.awssdk.services.dynamodb.model.DeleteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionResponse;
import software.amazon.awssdk.services.dynamodb.model.GetItemResponse;
import software.amazon.awssdk.services.dynamodb.model.ItemResponse;
import software.amazon.awssdk.services.dynamodb.model.PutItemResponse;
import software.amazon.awssdk.services.dynamodb.model.QueryResponse;
import software.amazon.awssdk.services.dynamodb.model.ScanResponse;
import software.amazon.awssdk.services.dynamodb.model.TransactGetItemsResponse;
import software.amazon.awssdk.services.dynamodb.model.TransactionCanceledException;
import software.amazon.awssdk.services.dynamodb.model.UpdateItemResponse;
import software.amazon.awssdk.services.dynamodb.model.WriteRequest;

/** Replies without our attributes. */
final class Replies {
  private Replies() {}

  /** Returns a reply as the application is shown it. */
  static SdkResponse without(SdkResponse reply) {
    if (reply instanceof GetItemResponse got) {
      return got.hasItem() ? got.toBuilder().item(Stored.without(got.item())).build() : got;
    }
    if (reply instanceof QueryResponse found) {
      return found.hasItems() ? found.toBuilder().items(items(found.items())).build() : found;
    }
    if (reply instanceof ScanResponse found) {
      return found.hasItems() ? found.toBuilder().items(items(found.items())).build() : found;
    }
    if (reply instanceof BatchGetItemResponse found) {
      return found.hasResponses()
          ? found.toBuilder().responses(values(found.responses(), Replies::items)).build()
          : found;
    }
    if (reply instanceof TransactGetItemsResponse found) {
      return found.hasResponses()
          ? found.toBuilder().responses(responses(found.responses())).build()
          : found;
    }
    return reply instanceof PutItemResponse
            || reply instanceof UpdateItemResponse
            || reply instanceof DeleteItemResponse
            || reply instanceof BatchWriteItemResponse
        ? ofWrite(reply)
        : ofStatement(reply);
  }

  private static SdkResponse ofWrite(SdkResponse reply) {
    if (reply instanceof PutItemResponse put && put.hasAttributes()) {
      return put.toBuilder().attributes(Stored.without(put.attributes())).build();
    }
    if (reply instanceof DeleteItemResponse deleted && deleted.hasAttributes()) {
      return deleted.toBuilder().attributes(Stored.without(deleted.attributes())).build();
    }
    if (reply instanceof UpdateItemResponse updated && updated.hasAttributes()) {
      Map<String, AttributeValue> shown = Stored.without(updated.attributes());
      // An update that changed nothing else says nothing.
      return updated.toBuilder().attributes(shown.isEmpty() ? null : shown).build();
    }
    if (reply instanceof BatchWriteItemResponse written && written.hasUnprocessedItems()) {
      return written.toBuilder()
          .unprocessedItems(
              values(
                  written.unprocessedItems(),
                  requests -> requests.stream().map(Replies::request).toList()))
          .build();
    }
    return reply;
  }

  private static WriteRequest request(WriteRequest request) {
    return request.putRequest() == null
        ? request
        : WriteRequest.builder()
            .putRequest(put -> put.item(Stored.without(request.putRequest().item())))
            .build();
  }

  private static SdkResponse ofStatement(SdkResponse reply) {
    if (reply instanceof ExecuteStatementResponse found && found.hasItems()) {
      return found.toBuilder().items(items(found.items())).build();
    }
    if (reply instanceof ExecuteTransactionResponse found && found.hasResponses()) {
      return found.toBuilder().responses(responses(found.responses())).build();
    }
    if (reply instanceof BatchExecuteStatementResponse found && found.hasResponses()) {
      return found.toBuilder()
          .responses(found.responses().stream().map(Replies::response).toList())
          .build();
    }
    return reply;
  }

  private static BatchStatementResponse response(BatchStatementResponse given) {
    BatchStatementResponse.Builder shown = given.toBuilder();
    if (given.hasItem()) {
      shown.item(Stored.without(given.item()));
    }
    @Nullable BatchStatementError error = given.error();
    if (error != null && error.hasItem()) {
      shown.error(error.toBuilder().item(Stored.without(error.item())).build());
    }
    return shown.build();
  }

  /** Returns what a statement says that it modified: nothing where that was the stamp alone. */
  static ExecuteStatementResponse modified(ExecuteStatementResponse told) {
    return told.toBuilder()
        .items(told.items().stream().filter(each -> !each.isEmpty()).toList())
        .build();
  }

  private static List<ItemResponse> responses(List<ItemResponse> given) {
    return given.stream()
        .map(
            each ->
                each.hasItem() ? each.toBuilder().item(Stored.without(each.item())).build() : each)
        .toList();
  }

  private static List<Map<String, AttributeValue>> items(List<Map<String, AttributeValue>> given) {
    return given.stream().map(Stored::without).toList();
  }

  private static <V> Map<String, V> values(Map<String, V> given, UnaryOperator<V> change) {
    Map<String, V> changed = new HashMap<>();
    given.forEach((name, value) -> changed.put(name, change.apply(value)));
    return changed;
  }

  /** Returns a refusal as the application is shown it. */
  static Throwable without(Throwable error) {
    if (error instanceof ConditionalCheckFailedException failed
        && failed.hasItem()
        && areOurs(failed.item().keySet())) {
      return like(failed, failed.toBuilder().item(Stored.without(failed.item())).build());
    }
    if (error instanceof TransactionCanceledException cancelled
        && cancelled.hasCancellationReasons()
        && cancelled.cancellationReasons().stream()
            .anyMatch(each -> areOurs(each.item().keySet()))) {
      List<CancellationReason> reasons =
          cancelled.cancellationReasons().stream()
              .map(
                  each ->
                      each.hasItem()
                          ? each.toBuilder().item(Stored.without(each.item())).build()
                          : each)
              .toList();
      return like(cancelled, cancelled.toBuilder().cancellationReasons(reasons).build());
    }
    return error;
  }

  private static boolean areOurs(Collection<String> names) {
    return Stored.OURS.stream().anyMatch(names::contains);
  }

  private static Throwable like(Throwable error, Throwable changed) {
    changed.setStackTrace(error.getStackTrace());
    for (Throwable suppressed : error.getSuppressed()) {
      changed.addSuppressed(suppressed);
    }
    return changed;
  }
}
