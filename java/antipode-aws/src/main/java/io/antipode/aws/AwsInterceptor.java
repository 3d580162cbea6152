package io.antipode.aws;

import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.barrier.Floor;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.AwsRequest;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttribute;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;

/**
 * What an instrumented client does before and after each call. It comes last of the client's
 * interceptors: it sees what goes out as it goes, and what comes back before the others do.
 */
public final class AwsInterceptor extends Attempts.Counting {
  /** For how long what a region showed counts for further reads of the same request. */
  private static final Duration PROVED = Duration.ofSeconds(2);

  private static final String REQUEST = "Request";

  private static final ExecutionAttribute<AwsCall> CALL =
      new ExecutionAttribute<>("antipode.aws.call");

  /** The application's call, where it was begun before the SDK made it. */
  private static final ExecutionAttribute<AwsCall> BEGUN =
      new ExecutionAttribute<>("antipode.aws.begun");

  private final AwsShim shim;

  AwsInterceptor(AwsShim shim) {
    this.shim = shim;
  }

  /**
   * Begins a call, in the application's thread.
   *
   * @param isOwnThread whether the application goes on when the call has ended
   */
  AwsCall begin(SdkRequest request, boolean isOwnThread) {
    AwsCall call = shim.call(operation(request), request, null);
    boolean isRefused = Settings.current().onUnscoped() == Policy.RAISE;
    if (call.kind() == Kind.WRITE && isRefused && Scope.currentOrNull() == null) {
      Recording.unscoped("write", shim.datastore(), Policy.RAISE);
    }
    if (call.reads(request)) {
      hold(call, request, isOwnThread);
    }
    return call;
  }

  private static String operation(SdkRequest request) {
    String name = request.getClass().getSimpleName();
    return name.endsWith(REQUEST) ? name.substring(0, name.length() - REQUEST.length()) : name;
  }

  private void hold(AwsCall call, SdkRequest request, boolean isOwnThread) {
    @Nullable Floor floor =
        isOwnThread
            ? Floor.current(shim, null, call.stale())
            : Floor.currentAhead(shim, call.stale());
    if (floor == null) {
      return;
    }
    @Nullable String refusal = call.refusal(request);
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

  /** Waits for what a call waits for. */
  void prepare(AwsCall call, SdkRequest request) {
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
    if (call.asks(request)) {
      call.ask(request);
    }
  }

  /** Returns a request that is of a call which was begun and prepared. */
  static AwsRequest of(AwsCall call, AwsRequest request) {
    AwsRequestOverrideConfiguration given =
        request
            .overrideConfiguration()
            .orElseGet(() -> AwsRequestOverrideConfiguration.builder().build());
    return request.toBuilder()
        .overrideConfiguration(given.toBuilder().putExecutionAttribute(BEGUN, call).build())
        .build();
  }

  // What the SDK reports.

  @Override
  public SdkRequest modifyRequest(Context.ModifyRequest context, ExecutionAttributes attributes) {
    SdkRequest request = context.request();
    AwsCall call = call(request, attributes.getAttribute(BEGUN));
    ExecutionAttributes unused = attributes.putAttribute(CALL, call);
    call.attempts().follow(attributes);
    try {
      return call.plan(request);
    } catch (RuntimeException error) { // A call goes its way, whatever fails here.
      misunderstood(call, error);
      call.uncover("was not understood");
      return request;
    }
  }

  private AwsCall call(SdkRequest request, @Nullable AwsCall begun) {
    if (begun == null) {
      AwsCall call = begin(request, true);
      prepare(call, request);
      return call;
    }
    String operation = operation(request);
    return begun.takes(operation) ? begun : shim.call(operation, request, begun);
  }

  @Override
  void sentCancelled(ExecutionAttributes attributes) {
    @Nullable AwsCall call = attributes.getAttribute(CALL);
    if (call != null) {
      call.sentCancelled();
    }
  }

  @Override
  public SdkResponse modifyResponse(
      Context.ModifyResponse context, ExecutionAttributes attributes) {
    SdkResponse response = context.response();
    @Nullable AwsCall call = attributes.getAttribute(CALL);
    if (call == null) {
      return response;
    }
    try { // It was made, and must not look failed; whatever is ours goes from it.
      call.answered(response);
    } catch (RuntimeException error) {
      misunderstood(call, error);
    }
    try {
      return call.shown(response);
    } catch (RuntimeException error) {
      misunderstood(call, error);
      return response;
    }
  }

  @Override
  public void onExecutionFailure(Context.FailedExecution context, ExecutionAttributes attributes) {
    @Nullable AwsCall call = attributes.getAttribute(CALL);
    if (call != null) {
      call.failed(context.exception());
    }
  }

  @Override
  public Throwable modifyException(
      Context.FailedExecution context, ExecutionAttributes attributes) {
    @Nullable AwsCall call = attributes.getAttribute(CALL);
    return call == null ? context.exception() : call.shown(context.exception());
  }

  private void misunderstood(AwsCall call, RuntimeException error) {
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
