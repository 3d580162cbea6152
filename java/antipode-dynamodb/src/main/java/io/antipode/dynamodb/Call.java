package io.antipode.dynamodb;

import io.antipode.aws.AwsCall;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementError;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementErrorCodeEnum;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementResponse;
import software.amazon.awssdk.services.dynamodb.model.BatchWriteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementResponse;

/** One call of an instrumented client, and the items that it writes. */
final class Call extends AwsCall {
  /**
   * One item that it writes.
   *
   * @param item null where its key is not known
   * @param stamp what the write gets
   */
  record Planned(@Nullable Item item, long stamp) {
    /** In the place of a statement that writes nothing. */
    static final Planned NOTHING = new Planned(null, 0);

    boolean isWrite() {
      return stamp != 0;
    }
  }

  private final DynamoDbShim shim;
  private final List<Planned> planned = new ArrayList<>();

  Call(DynamoDbShim shim, String operation, SdkRequest request) {
    super(
        shim,
        operation,
        Commands.kind(
            operation,
            Statements.of(request).stream().<@Nullable String>map(Statements.Given::text).toList()),
        null,
        operation.equals("TransactWriteItems") || operation.equals("ExecuteTransaction"));
    this.shim = shim;
  }

  List<Planned> planned() {
    return planned;
  }

  /** Returns what it writes; none where one of its items is not known. */
  List<WriteId> writes() {
    List<WriteId> writes = new ArrayList<>();
    for (Planned each : planned) {
      if (each.item() == null) {
        return List.of();
      }
      writes.add(shim.written(each.item(), each.stamp()));
    }
    return writes;
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
    List<Planned> done = done(response);
    if (done.stream().anyMatch(each -> each.item() == null)) {
      shim.uncovered(operation() + " writes an item of which the key is not known");
    }
    for (Planned each : done) {
      if (each.item() != null) {
        Recording.recordWrite(shim.written(each.item(), each.stamp()));
      }
    }
  }

  private List<Planned> done(SdkResponse response) {
    if (response instanceof BatchWriteItemResponse batch && batch.hasUnprocessedItems()) {
      return Writes.done(planned, batch.unprocessedItems());
    }
    if (response instanceof BatchExecuteStatementResponse batch) {
      return accepted(batch.responses());
    }
    return planned.stream().filter(Planned::isWrite).toList();
  }

  /** Returns what a batch of statements did; what failed at the service is in doubt. */
  private List<Planned> accepted(List<BatchStatementResponse> responses) {
    List<Planned> accepted = new ArrayList<>();
    for (int each = 0; each < planned.size(); each++) {
      @Nullable BatchStatementError error = responses.get(each).error();
      if (error == null && planned.get(each).isWrite()) {
        accepted.add(planned.get(each));
      }
      if (error != null && error.code() == BatchStatementErrorCodeEnum.INTERNAL_SERVER_ERROR) {
        Recording.markIncomplete(shim.datastore(), "in_doubt");
      }
    }
    return accepted;
  }

  @Override
  protected SdkResponse shown(SdkResponse response) {
    SdkResponse shown = Replies.without(response);
    return kind().mayWrite() && shown instanceof ExecuteStatementResponse told && told.hasItems()
        ? Replies.modified(told)
        : shown;
  }

  @Override
  protected Throwable shown(Throwable error) {
    return Replies.without(error);
  }
}
