package io.antipode.dynamodb;

import io.opentelemetry.context.Context;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;

/**
 * An asynchronous client whose calls wait in no thread of the application's, and whose futures say
 * when they are cancelled: the SDK reports that to no interceptor.
 */
final class InstrumentedAsync implements InvocationHandler {
  private final DynamoDbAsyncClient real;
  private final Interceptor interceptor;
  private final Executor waiting;

  private InstrumentedAsync(DynamoDbAsyncClient real, Interceptor interceptor, Executor waiting) {
    this.real = real;
    this.interceptor = interceptor;
    this.waiting = waiting;
  }

  /**
   * Returns a client that is used in the place of another one.
   *
   * @param waiting whose threads wait for what is not shown yet
   */
  static DynamoDbAsyncClient face(
      DynamoDbAsyncClient real, Interceptor interceptor, Executor waiting) {
    return (DynamoDbAsyncClient)
        Proxy.newProxyInstance(
            DynamoDbAsyncClient.class.getClassLoader(),
            new Class<?>[] {DynamoDbAsyncClient.class},
            new InstrumentedAsync(real, interceptor, waiting));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("equals")) {
      return proxy == arguments[0];
    }
    boolean isMadeOfCalls =
        method.isDefault()
            && (method.getName().endsWith("Paginator")
                || Arrays.asList(method.getParameterTypes()).contains(Consumer.class));
    if (isMadeOfCalls) {
      return InvocationHandler.invokeDefault(proxy, method, arguments);
    }
    if (method.getReturnType() == CompletableFuture.class
        && arguments != null
        && arguments.length == 1
        && arguments[0] instanceof SdkRequest request) {
      return called(method, request);
    }
    return invoked(method, arguments);
  }

  private Object invoked(Method method, Object... arguments) throws Throwable {
    try {
      return method.invoke(real, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    }
  }

  private CompletableFuture<Object> called(Method method, SdkRequest request) {
    CompletableFuture<Object> made = new CompletableFuture<>();
    Call call;
    try {
      call = interceptor.begin(request, false);
    } catch (RuntimeException error) {
      made.completeExceptionally(error);
      return made;
    }
    onCancel(made, call::cancelled);
    if (interceptor.waits(call, request)) {
      try {
        waiting.execute(Context.current().wrap(() -> prepare(method, request, call, made)));
      } catch (RejectedExecutionException error) {
        made.completeExceptionally(
            new IllegalStateException("the shim of this client is closed", error));
      }
    } else {
      send(method, request, call, made);
    }
    return made;
  }

  private void prepare(
      Method method, SdkRequest request, Call call, CompletableFuture<Object> made) {
    try {
      interceptor.prepare(call, request);
      send(method, request, call, made);
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
  private void send(Method method, SdkRequest request, Call call, CompletableFuture<Object> made) {
    if (made.isDone()) {
      return;
    }
    CompletableFuture<Object> sent;
    interceptor.expect(call);
    try {
      sent = (CompletableFuture<Object>) invoked(method, request);
    } catch (Throwable error) {
      made.completeExceptionally(error);
      return;
    } finally {
      interceptor.expect(null);
    }
    CompletableFuture<Object> unused =
        sent.whenComplete(
            (reply, error) -> {
              if (error == null) {
                made.complete(reply);
              } else {
                boolean isWrapped =
                    error instanceof CompletionException && error.getCause() != null;
                made.completeExceptionally(isWrapped ? error.getCause() : error);
              }
            });
    onCancel(made, () -> sent.cancel(true));
  }
}
