package io.antipode.s3;

import io.antipode.runtime.Counts;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.function.Consumer;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/** A presigner whose signatures are counted: somebody else makes those calls, some time. */
final class CountedPresigner implements InvocationHandler {
  private final S3Presigner real;
  private final String datastore;

  private CountedPresigner(S3Presigner real, String datastore) {
    this.real = real;
    this.datastore = datastore;
  }

  /** Returns a presigner that is used in the place of another one. */
  static S3Presigner of(S3Presigner real, String datastore) {
    return (S3Presigner)
        Proxy.newProxyInstance(
            S3Presigner.class.getClassLoader(),
            new Class<?>[] {S3Presigner.class},
            new CountedPresigner(real, datastore));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("equals")) {
      return proxy == arguments[0];
    }
    if (List.of(method.getParameterTypes()).contains(Consumer.class)) {
      return InvocationHandler.invokeDefault(proxy, method, arguments);
    }
    if (method.getName().startsWith("presign")) {
      Counts.count("presigned", datastore);
    }
    try {
      return method.invoke(real, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    }
  }
}
