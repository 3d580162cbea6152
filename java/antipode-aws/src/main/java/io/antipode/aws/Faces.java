package io.antipode.aws;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;

/** Objects that are used in the place of clients. */
final class Faces {
  private Faces() {}

  /** Returns what is used in the place of a client. */
  static <C extends AwsClient> C of(Class<C> api, InvocationHandler handler) {
    return api.cast(Proxy.newProxyInstance(api.getClassLoader(), new Class<?>[] {api}, handler));
  }

  /** Returns whether the calls of a client are followed already. */
  static boolean isFollowed(AwsClient client) {
    if (Proxy.isProxyClass(client.getClass())) {
      InvocationHandler handler = Proxy.getInvocationHandler(client);
      return handler instanceof InstrumentedAsync || handler instanceof MadeBefore;
    }
    List<ExecutionInterceptor> interceptors =
        client.serviceClientConfiguration().overrideConfiguration().executionInterceptors();
    return interceptors.stream().anyMatch(AwsInterceptor.class::isInstance);
  }

  /** Returns whether the API makes other calls of a call, which are followed in its place. */
  static boolean isMadeOfCalls(Method method) {
    List<Class<?>> parameters = List.of(method.getParameterTypes());
    return method.isDefault()
        && (method.getName().endsWith("Paginator")
            || parameters.contains(Consumer.class)
            || parameters.contains(Path.class));
  }

  /** Makes a call of a client. */
  static Object invoked(AwsClient real, Method method, Object... arguments) throws Throwable {
    try {
      return method.invoke(real, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    }
  }
}
