package io.antipode.dynamodb;

import io.antipode.aws.AwsCall;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchWriteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionRequest;
import software.amazon.awssdk.services.dynamodb.model.ParameterizedStatement;

/** One call of an instrumented client, and the items that it writes. */
final class Call extends AwsCall {
  /**
   * One item that it writes.
   *
   * @param item null where its key is not known
   * @param stamp what the write gets
   */
  record Planned(@Nullable Item item, long stamp) {}

  private final DynamoDbShim shim;
  private final List<Planned> planned = new ArrayList<>();

  Call(DynamoDbShim shim, String operation, SdkRequest request) {
    super(
        shim,
        operation,
        Commands.kind(operation, statements(request)),
        null,
        operation.equals("TransactWriteItems") || operation.equals("ExecuteTransaction"));
    this.shim = shim;
  }

  private static List<@Nullable String> statements(SdkRequest request) {
    if (request instanceof ExecuteStatementRequest one) {
      return List.of(one.statement());
    }
    if (request instanceof BatchExecuteStatementRequest batch) {
      return batch.statements().stream().map(BatchStatementRequest::statement).toList();
    }
    return request instanceof ExecuteTransactionRequest transaction
        ? transaction.transactStatements().stream().map(ParameterizedStatement::statement).toList()
        : List.of();
  }

  List<Planned> planned() {
    return planned;
  }

  /** Returns a stamp for one of its writes: later than whatever its request has seen. */
  long stamp(boolean isDeletion) {
    return shim.stamp(known(), isDeletion);
  }

  @Override
  protected boolean reads(SdkRequest request) {
    return super.reads(request) || Writes.showsItems(request);
  }

  @Override
  protected @Nullable String refusal(SdkRequest request) {
    return Consistent.refusal(request);
  }

  @Override
  protected boolean asks(SdkRequest request) {
    return kind().mayWrite() && !shim.writes().unknownTables(request).isEmpty();
  }

  @Override
  protected void ask(SdkRequest request) {
    for (String table : shim.writes().unknownTables(request)) {
      try {
        shim.learnKey(table);
      } catch (RuntimeException error) { // What is not known marks the lineage.
        Counts.logOnce(
            "dynamodb_key",
            shim.datastore(),
            table,
            () ->
                "the key of the table "
                    + table
                    + " is not known, so puts into it mark the lineage: allow DescribeTable, or say"
                    + " DynamoDbShim.Builder.tableKey(): "
                    + error);
      }
    }
  }

  @Override
  protected SdkRequest plan(SdkRequest request) {
    SdkRequest planned = kind().mayWrite() ? shim.writes().plan(this, request) : request;
    return isUnderFloor() ? Consistent.of(planned) : planned;
  }

  @Override
  protected void record(SdkResponse response) {
    if (!kind().mayWrite()) {
      return;
    }
    List<Planned> done =
        response instanceof BatchWriteItemResponse batch && batch.hasUnprocessedItems()
            ? Writes.done(planned, batch.unprocessedItems())
            : planned;
    if (done.stream().anyMatch(each -> each.item() == null)) {
      shim.uncovered(operation() + " writes an item of which the key is not known");
    }
    for (Planned each : done) {
      if (each.item() != null) {
        Recording.recordWrite(shim.written(each.item(), each.stamp()));
      }
    }
  }

  @Override
  protected SdkResponse shown(SdkResponse response) {
    return Replies.without(response);
  }

  @Override
  protected Throwable shown(Throwable error) {
    return Replies.without(error);
  }
}
