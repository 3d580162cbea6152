package io.antipode.dynamodb;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchGetItemRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.GetItemRequest;
import software.amazon.awssdk.services.dynamodb.model.KeysAndAttributes;
import software.amazon.awssdk.services.dynamodb.model.QueryRequest;
import software.amazon.awssdk.services.dynamodb.model.ScanRequest;

/** How a read under a floor is made consistent. */
final class Consistent {
  private Consistent() {}

  /** Returns why a read cannot show what its region has now; null where it can. */
  static @Nullable String refusal(SdkRequest request) {
    if (request instanceof GetItemRequest get) {
      return refusal("GetItem", get.consistentRead(), null);
    }
    if (request instanceof QueryRequest query) {
      return refusal("Query", query.consistentRead(), query.indexName());
    }
    if (request instanceof ScanRequest scan) {
      return refusal("Scan", scan.consistentRead(), scan.indexName());
    }
    if (request instanceof ExecuteStatementRequest statement) {
      return refusal(
          "ExecuteStatement", statement.consistentRead(), Statement.indexOf(statement.statement()));
    }
    List<@Nullable String> refusals =
        request instanceof BatchGetItemRequest batch
            ? batch.requestItems().values().stream()
                .<@Nullable String>map(each -> refusal("BatchGetItem", each.consistentRead(), null))
                .toList()
            : request instanceof BatchExecuteStatementRequest batch
                ? batch.statements().stream()
                    .<@Nullable String>map(
                        each ->
                            refusal(
                                "BatchExecuteStatement",
                                each.consistentRead(),
                                Statement.indexOf(each.statement())))
                    .toList()
                : List.of();
    return refusals.stream().filter(Objects::nonNull).findFirst().orElse(null);
  }

  private static @Nullable String refusal(
      String operation, @Nullable Boolean asked, @Nullable String index) {
    if (Boolean.FALSE.equals(asked)) {
      return operation + " has consistentRead(false): leave it out after a barrier, or say true";
    }
    if (index != null && asked == null) {
      return operation
          + " reads the index '"
          + index
          + "': a global index is never consistent, so read the table after a barrier; of a local"
          + " one say consistentRead(true)";
    }
    return null;
  }

  /** Returns a read that shows what its region has now. */
  static SdkRequest of(SdkRequest request) {
    if (request instanceof GetItemRequest get) {
      return get.toBuilder().consistentRead(true).build();
    }
    if (request instanceof QueryRequest query) {
      return query.toBuilder().consistentRead(true).build();
    }
    if (request instanceof ScanRequest scan) {
      return scan.toBuilder().consistentRead(true).build();
    }
    if (request instanceof ExecuteStatementRequest statement) {
      return statement.toBuilder().consistentRead(true).build();
    }
    if (request instanceof BatchGetItemRequest batch) {
      Map<String, KeysAndAttributes> asked = new HashMap<>();
      batch
          .requestItems()
          .forEach(
              (table, keys) -> asked.put(table, keys.toBuilder().consistentRead(true).build()));
      return batch.toBuilder().requestItems(asked).build();
    }
    if (request instanceof BatchExecuteStatementRequest batch) {
      return batch.toBuilder()
          .statements(
              batch.statements().stream()
                  .map(each -> each.toBuilder().consistentRead(true).build())
                  .toList())
          .build();
    }
    return request; // A transaction is consistent.
  }
}
