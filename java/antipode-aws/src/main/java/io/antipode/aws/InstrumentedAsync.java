package io.antipode.aws;

import io.opentelemetry.context.Context;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.AwsRequest;

/**
 * An asynchronous client whose calls wait in no thread of the application's, and whose futures say
 * when they are cancelled: the SDK reports that to no interceptor.
 */
final class InstrumentedAsync implements InvocationHandler {
  private final AwsClient real;
  private final AwsInterceptor interceptor;
  private final Executor waiting;

  private InstrumentedAsync(AwsClient real, AwsInterceptor interceptor, Executor waiting) {
    this.real = real;
    this.interceptor = interceptor;
    this.waiting = waiting;
  }

  /**
   * Returns a client that is used in the place of another one.
   *
   * @param api of the client
   * @param waiting whose threads wait for what is not shown yet
   */
  static <C extends AwsClient> C face(
      Class<C> api, C real, AwsInterceptor interceptor, Executor waiting) {
    return Faces.of(api, new InstrumentedAsync(real, interceptor, waiting));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("equals")) {
      return proxy == arguments[0];
    }
    if (Faces.isMadeOfCalls(method)) {
      return InvocationHandler.invokeDefault(proxy, method, arguments);
    }
    if (method.getReturnType() == CompletableFuture.class
        && arguments != null
        && arguments[0] instanceof AwsRequest request) {
      return called(method, request, arguments);
    }
    return Faces.invoked(real, method, arguments);
  }

  private CompletableFuture<Object> called(Method method, AwsRequest request, Object... arguments) {
    ScopedFuture<Object> made = ScopedFuture.inCurrent();
    AwsCall call;
    try {
      call = interceptor.begin(request, false);
    } catch (RuntimeException error) {
      made.completeExceptionally(error);
      return made;
    }
    onCancel(made, call::cancelled);
    if (call.isHeld() || call.asks(request)) {
      try {
        waiting.execute(
            Context.current().wrap(() -> prepare(method, request, call, made, arguments)));
      } catch (RejectedExecutionException error) {
        made.completeExceptionally(
            new IllegalStateException("the shim of this client is closed", error));
      }
    } else {
      send(method, request, call, made, arguments);
    }
    return made;
  }

  private void prepare(
      Method method,
      AwsRequest request,
      AwsCall call,
      ScopedFuture<Object> made,
      Object... arguments) {
    try {
      interceptor.prepare(call, request);
      send(method, request, call, made, arguments);
    } catch (Throwable error) {
      made.completeExceptionally(error);
    }
  }

  private static void onCancel(CompletableFuture<?> made, Runnable action) {
    CompletableFuture<?> unused =
        made.whenComplete(
            (reply, error) -> {
              if (error instanceof CancellationException) {
                action.run();
              }
            });
  }

  @SuppressWarnings("unchecked")
  private void send(
      Method method,
      AwsRequest request,
      AwsCall call,
      ScopedFuture<Object> made,
      Object... arguments) {
    if (made.isDone()) {
      return;
    }
    CompletableFuture<Object> sent;
    Object[] of = arguments.clone();
    of[0] = AwsInterceptor.of(call, request);
    try {
      sent = (CompletableFuture<Object>) Faces.invoked(real, method, of);
    } catch (Throwable error) {
      made.completeExceptionally(error);
      return;
    }
    CompletableFuture<Object> unused =
        sent.whenComplete(
            (reply, error) -> {
              boolean isWrapped = error instanceof CompletionException && error.getCause() != null;
              made.ends(reply, isWrapped ? error.getCause() : error);
            });
    onCancel(made, () -> sent.cancel(true));
  }
}
