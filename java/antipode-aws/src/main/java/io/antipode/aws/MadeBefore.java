package io.antipode.aws;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.AwsRequest;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.SdkPlugin;

/** A client that was made before: each of its requests brings the interceptor. */
final class MadeBefore implements InvocationHandler {
  private final AwsClient real;
  private final SdkPlugin plugin;

  private MadeBefore(AwsClient real, AwsInterceptor interceptor) {
    this.real = real;
    this.plugin =
        client ->
            client.overrideConfiguration(options -> options.addExecutionInterceptor(interceptor));
  }

  /** Returns a client that is used in the place of another one. */
  static <C extends AwsClient> C face(Class<C> api, C real, AwsInterceptor interceptor) {
    return Faces.of(api, new MadeBefore(real, interceptor));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("equals")) {
      return proxy == arguments[0];
    }
    if (Faces.isMadeOfCalls(method)) {
      return InvocationHandler.invokeDefault(proxy, method, arguments);
    }
    if (arguments != null && arguments[0] instanceof AwsRequest request) {
      Object[] of = arguments.clone();
      of[0] = followed(request);
      return Faces.invoked(real, method, of);
    }
    return Faces.invoked(real, method, arguments);
  }

  private AwsRequest followed(AwsRequest request) {
    AwsRequestOverrideConfiguration given =
        request
            .overrideConfiguration()
            .orElseGet(() -> AwsRequestOverrideConfiguration.builder().build());
    return request.toBuilder()
        .overrideConfiguration(given.toBuilder().addPlugin(plugin).build())
        .build();
  }
}
