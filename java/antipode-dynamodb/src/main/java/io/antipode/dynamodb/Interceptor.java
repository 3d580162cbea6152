package io.antipode.dynamodb;

import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.barrier.Floor;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.dynamodb.Call.Planned;
import io.antipode.dynamodb.Commands.Kind;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.services.dynamodb.model.BatchExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.BatchWriteItemResponse;
import software.amazon.awssdk.services.dynamodb.model.ExecuteStatementRequest;
import software.amazon.awssdk.services.dynamodb.model.ExecuteTransactionRequest;
import software.amazon.awssdk.services.dynamodb.model.ParameterizedStatement;

/**
 * What an instrumented client does before and after each call. It comes last of the client's
 * interceptors: it sees what goes out as it goes, and what comes back before the others do.
 */
final class Interceptor extends Attempts.Counting {
  /** For how long what a region showed counts for further reads of the same request. */
  private static final Duration PROVED = Duration.ofSeconds(2);

  private static final String REQUEST = "Request";

  /** What the next call of this thread was begun as; null for a call of a synchronous client. */
  private static final ThreadLocal<@Nullable Call> BEGUN = new ThreadLocal<>();

  private final DynamoDbShim shim;

  Interceptor(DynamoDbShim shim) {
    this.shim = shim;
  }

  /**
   * Begins a call, in the application's thread.
   *
   * @param isOwnThread whether the application goes on when the call has ended
   */
  Call begin(SdkRequest request, boolean isOwnThread) {
    String name = request.getClass().getSimpleName();
    String operation =
        name.endsWith(REQUEST) ? name.substring(0, name.length() - REQUEST.length()) : name;
    Kind kind = Commands.kind(operation, statements(request));
    Call call = new Call(shim, operation, kind);
    boolean isRefused = Settings.current().onUnscoped() == Policy.RAISE;
    if (kind == Kind.WRITE && isRefused && Scope.currentOrNull() == null) {
      Recording.unscoped("write", shim.datastore(), Policy.RAISE);
    }
    if (kind == Kind.READ || Writes.showsItems(request)) {
      hold(call, request, isOwnThread);
    }
    return call;
  }

  private void hold(Call call, SdkRequest request, boolean isOwnThread) {
    @Nullable Floor floor =
        isOwnThread
            ? Floor.current(shim, null, call.stale())
            : Floor.currentAhead(shim, call.stale());
    if (floor == null) {
      return;
    }
    @Nullable String refusal = Consistent.refusal(request);
    if (refusal != null) {
      floor.failSnapshot(new StaleSnapshotException(refusal), other -> false);
      return;
    }
    if (floor.isProvedOn(shim.region(), PROVED)) {
      floor.pass();
      call.hold(null);
    } else {
      call.hold(floor);
    }
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

  /** Returns whether a call waits for something before it is sent. */
  boolean waits(Call call, SdkRequest request) {
    return call.isHeld() || !shim.writes().unknownTables(request).isEmpty();
  }

  /** Waits for what a call waits for. */
  void prepare(Call call, SdkRequest request) {
    try {
      call.await();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw AbortedException.create("a read of " + shim.datastore() + " was held back", error);
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception impossible) { // A poll throws no others.
      throw new IllegalStateException(impossible);
    }
    if (!call.kind().mayWrite()) {
      return;
    }
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

  /** Makes the next call of this thread one that was begun and prepared. */
  void expect(@Nullable Call call) {
    if (call == null) {
      BEGUN.remove();
    } else {
      BEGUN.set(call);
    }
  }

  // What the SDK reports.

  @Override
  public SdkRequest modifyRequest(Context.ModifyRequest context, ExecutionAttributes attributes) {
    SdkRequest request = context.request();
    @Nullable Call call = BEGUN.get();
    if (call == null) {
      call = begin(request, true);
      prepare(call, request);
    } else {
      BEGUN.remove();
    }
    ExecutionAttributes unused = attributes.putAttribute(Call.KEY, call);
    call.attempts().follow(attributes);
    if (call.kind().mayWrite()) {
      try {
        SdkRequest planned = shim.writes().plan(call, request);
        return call.isConsistent() ? Consistent.of(planned) : planned;
      } catch (RuntimeException error) { // A call goes its way, whatever fails here.
        misunderstood(call, error);
        call.uncover("was not understood");
        call.planned().clear();
        return request;
      }
    }
    return call.isConsistent() ? Consistent.of(request) : request;
  }

  @Override
  void sentCancelled(ExecutionAttributes attributes) {
    @Nullable Call call = attributes.getAttribute(Call.KEY);
    if (call != null) {
      call.sentCancelled();
    }
  }

  @Override
  public SdkResponse modifyResponse(
      Context.ModifyResponse context, ExecutionAttributes attributes) {
    SdkResponse response = context.response();
    @Nullable Call call = attributes.getAttribute(Call.KEY);
    if (call == null) {
      return response;
    }
    try {
      if (call.settle()) {
        call.stale().answered();
        call.within(() -> answered(call, response));
      }
      return Replies.without(response);
    } catch (RuntimeException error) { // It was made, and must not look failed.
      misunderstood(call, error);
      return response;
    }
  }

  private void answered(Call call, SdkResponse response) {
    if (!call.kind().mayWrite()) {
      return;
    }
    @Nullable String uncovered = call.uncovered();
    if (uncovered != null) {
      shim.uncovered(call.operation() + " " + uncovered);
      return;
    }
    List<Planned> done =
        response instanceof BatchWriteItemResponse batch && batch.hasUnprocessedItems()
            ? Writes.done(call.planned(), batch.unprocessedItems())
            : call.planned();
    if (done.stream().anyMatch(each -> each.item() == null)) {
      shim.uncovered(call.operation() + " writes an item of which the key is not known");
    }
    for (Planned each : done) {
      if (each.item() != null) {
        Recording.recordWrite(shim.written(each.item(), each.stamp()));
      }
    }
  }

  @Override
  public void onExecutionFailure(Context.FailedExecution context, ExecutionAttributes attributes) {
    @Nullable Call call = attributes.getAttribute(Call.KEY);
    if (call != null) {
      call.failed(context.exception());
    }
  }

  @Override
  public Throwable modifyException(
      Context.FailedExecution context, ExecutionAttributes attributes) {
    return attributes.getAttribute(Call.KEY) == null
        ? context.exception()
        : Replies.without(context.exception());
  }

  private void misunderstood(Call call, RuntimeException error) {
    Counts.logOnce(
        "not_followed",
        shim.datastore(),
        call.operation(),
        () -> call.operation() + " on '" + shim.datastore() + "' could not be followed: " + error);
    if (call.kind().mayWrite()) {
      call.within(() -> Recording.markIncomplete(shim.datastore(), "unsampled"));
    }
  }
}
