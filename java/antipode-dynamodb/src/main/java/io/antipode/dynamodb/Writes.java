package io.antipode.dynamodb;

import io.antipode.dynamodb.Call.Planned;
import io.antipode.lineage.WriteId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BatchWriteItemRequest;
import software.amazon.awssdk.services.dynamodb.model.Delete;
import software.amazon.awssdk.services.dynamodb.model.DeleteItemRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionRequest;
import software.amazon.awssdk.services.dynamodb.model.Put;
import software.amazon.awssdk.services.dynamodb.model.PutItemRequest;
import software.amazon.awssdk.services.dynamodb.model.PutRequest;
import software.amazon.awssdk.services.dynamodb.model.ReturnValue;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItemsRequest;
import software.amazon.awssdk.services.dynamodb.model.UpdateItemRequest;
import software.amazon.awssdk.services.dynamodb.model.WriteRequest;

/** What requests write, and how their items come to have stamps. */
final class Writes {
  /** The names of the attributes of tables' keys. */
  private final Map<String, List<String>> keys = new ConcurrentHashMap<>();

  /** Begins with what is known of the keys of tables. */
  Writes(Map<String, List<String>> keys) {
    this.keys.putAll(keys);
  }

  /** Takes over the names of the attributes of a table's key. */
  void learn(String table, List<String> names) {
    keys.put(table, List.copyOf(names));
  }

  /** Returns the tables that a request puts into or names in statements, of unknown keys. */
  Set<String> unknownTables(SdkRequest request) {
    Set<String> unknown = new HashSet<>();
    tables(request)
        .map(Item::tableName)
        .filter(each -> !keys.containsKey(each))
        .forEach(unknown::add);
    return unknown;
  }

  private static Stream<String> tables(SdkRequest request) {
    if (request instanceof PutItemRequest put && put.tableName() != null) {
      return Stream.of(put.tableName());
    }
    if (request instanceof BatchWriteItemRequest batch) {
      return batch.requestItems().entrySet().stream()
          .filter(each -> each.getValue().stream().anyMatch(one -> one.putRequest() != null))
          .map(Map.Entry::getKey);
    }
    if (request instanceof TransactWriteItemsRequest transaction) {
      return transaction.transactItems().stream()
          .map(TransactWriteItem::put)
          .flatMap(
              put ->
                  put == null || Records.isOpen(put) ? Stream.empty() : Stream.of(put.tableName()));
    }
    return Statements.of(request).stream()
        .map(Statements.Given::parsed)
        .flatMap(each -> each == null ? Stream.empty() : Stream.of(each.table()));
  }

  /** Returns whether a write shows its caller what was there, as a read does. */
  static boolean showsItems(SdkRequest request) {
    @Nullable ReturnValue shown =
        request instanceof PutItemRequest put
            ? put.returnValues()
            : request instanceof UpdateItemRequest update
                ? update.returnValues()
                : request instanceof DeleteItemRequest delete ? delete.returnValues() : null;
    return shown != null && shown != ReturnValue.NONE;
  }

  /** Plans what a call writes; returns its request with stamps. */
  SdkRequest plan(Call call, SdkRequest request) {
    if (request instanceof PutItemRequest put) {
      return put.toBuilder().item(put(call, put.tableName(), put.item())).build();
    }
    if (request instanceof UpdateItemRequest update) {
      return Updates.stamped(update, update(call, update.tableName(), update.key()));
    }
    if (request instanceof DeleteItemRequest delete) {
      delete(call, delete.tableName(), delete.key());
      return delete;
    }
    if (request instanceof BatchWriteItemRequest batch) {
      if (batch.requestItems().values().stream().anyMatch(Writes::hasTwice)) {
        // It is refused for that; each with a stamp of its own would differ.
        call.uncover("has a request twice");
        return batch;
      }
      Map<String, List<WriteRequest>> stamped = new HashMap<>();
      batch
          .requestItems()
          .forEach(
              (table, requests) ->
                  stamped.put(
                      table, requests.stream().map(each -> batched(call, table, each)).toList()));
      return batch.toBuilder().requestItems(stamped).build();
    }
    if (hasToken(request)) { // Its parameters must be the same in each attempt.
      call.uncover("has a clientRequestToken of the application's");
      return request;
    }
    if (request instanceof TransactWriteItemsRequest transaction) {
      List<TransactWriteItem> acted =
          transaction.transactItems().stream().map(each -> acted(call, each)).toList();
      List<WriteId> writes = call.writes();
      return transaction.toBuilder()
          .transactItems(acted.stream().map(each -> naming(each, writes)).toList())
          .build();
    }
    if (!Statements.of(request).isEmpty()) {
      return Statements.changed(request, each -> stated(call, each));
    }
    call.uncover("is not covered");
    return request;
  }

  private static boolean hasTwice(List<WriteRequest> requests) {
    return new HashSet<>(requests).size() < requests.size();
  }

  private static boolean hasToken(SdkRequest request) {
    return request instanceof TransactWriteItemsRequest items
        ? items.clientRequestToken() != null
        : request instanceof ExecuteTransactionRequest statements
            && statements.clientRequestToken() != null;
  }

  /** Returns a statement with its stamp; one that is not understood stays as it is. */
  private @Nullable String stated(Call call, Statements.Given given) {
    @Nullable Statement statement = given.parsed();
    if (statement == null) {
      if (!Commands.isRead(given.text())) { // Such as EXISTS.
        call.uncover("has a statement that is not understood");
      }
      call.planned().add(Planned.NOTHING); // Replies to a batch are in order.
      return given.text();
    }
    long stamp = call.stamp(statement.isDeletion());
    call.planned().add(new Planned(item(statement.table(), statement.values()), stamp));
    return statement.stamped(stamp);
  }

  /** Returns the item among whose attributes are those of its table's key; null if not known. */
  private @Nullable Item item(String table, Map<String, AttributeValue> values) {
    @Nullable List<String> names = keys.get(Item.tableName(table));
    return names == null ? null : Item.of(table, values, names);
  }

  private Map<String, AttributeValue> put(
      Call call, String table, Map<String, AttributeValue> item) {
    long stamp = call.stamp(false);
    call.planned().add(new Planned(item(table, item), stamp));
    return Stored.stamped(item, stamp);
  }

  private static long update(Call call, String table, Map<String, AttributeValue> key) {
    long stamp = call.stamp(false);
    call.planned().add(new Planned(Item.of(table, key), stamp));
    return stamp;
  }

  private static void delete(Call call, String table, Map<String, AttributeValue> key) {
    call.planned().add(new Planned(Item.of(table, key), call.stamp(true)));
  }

  private WriteRequest batched(Call call, String table, WriteRequest request) {
    @Nullable PutRequest put = request.putRequest();
    if (put != null) {
      return request.toBuilder()
          .putRequest(put.toBuilder().item(put(call, table, put.item())).build())
          .build();
    }
    delete(call, table, request.deleteRequest().key());
    return request;
  }

  /** Returns an action that says what its transaction writes, if it is the record of a promise. */
  private static TransactWriteItem naming(TransactWriteItem action, List<WriteId> writes) {
    return Records.isOpen(action.put()) && !writes.isEmpty()
        ? action.toBuilder().put(Records.naming(action.put(), writes)).build()
        : action;
  }

  private TransactWriteItem acted(Call call, TransactWriteItem action) {
    @Nullable Put put = action.put();
    if (Records.isOpen(put)) {
      return action;
    }
    if (put != null) {
      return action.toBuilder()
          .put(put.toBuilder().item(put(call, put.tableName(), put.item())).build())
          .build();
    }
    if (action.update() != null) {
      long stamp = update(call, action.update().tableName(), action.update().key());
      return action.toBuilder().update(Updates.stamped(action.update(), stamp)).build();
    }
    @Nullable Delete delete = action.delete();
    if (delete != null) {
      delete(call, delete.tableName(), delete.key());
    }
    return action;
  }

  /** Returns what of a batch's plan was done: the rest is left to the application. */
  static List<Planned> done(List<Planned> planned, Map<String, List<WriteRequest>> unprocessed) {
    Set<Object> left = new HashSet<>();
    unprocessed.forEach(
        (table, requests) -> {
          for (WriteRequest each : requests) {
            @Nullable Object written =
                each.putRequest() != null
                    ? Stored.stampOf(each.putRequest().item())
                    : Item.of(table, each.deleteRequest().key());
            if (written != null) {
              left.add(written);
            }
          }
        });
    List<Planned> done = new ArrayList<>(planned);
    done.removeIf(
        each -> left.contains(each.stamp()) || (each.item() != null && left.contains(each.item())));
    return done;
  }
}
