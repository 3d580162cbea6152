package io.antipode.mongodb;

import com.mongodb.MongoInterruptedException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoCluster;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.MongoIterable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Spliterators;
import org.jspecify.annotations.Nullable;

/**
 * Stands for an object of the driver's: each call is a {@link Call}, and what it returns has a
 * proxy as well.
 */
final class Face implements InvocationHandler {
  private static final List<Class<?>> FACED =
      List.of(
          MongoCluster.class,
          MongoDatabase.class,
          MongoCollection.class,
          MongoIterable.class,
          MongoCursor.class,
          ClientSession.class);

  private final Instrumented client;
  private final Object real;

  private Face(Instrumented client, Object real) {
    this.client = client;
    this.real = real;
  }

  /** Returns what stands for an object. */
  static Object of(Instrumented client, Object real) {
    return Faces.of(new Face(client, real), real);
  }

  /** Returns what is behind a proxy; whatever is none is that itself. */
  private static @Nullable Object behind(@Nullable Object object) {
    return object instanceof Faces.Faced faced ? faced.face().real : object;
  }

  static boolean isFace(Object object) {
    return object instanceof Faces.Faced;
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] given)
      throws Throwable {
    Object[] arguments = given == null ? new Object[0] : given.clone();
    for (int nth = 0; nth < arguments.length; nth++) {
      arguments[nth] = behind(arguments[nth]);
    }
    return switch (method.getName()) {
      case "equals" -> real.equals(arguments[0]);
      case "hashCode" -> real.hashCode();
      case "toString" -> real.toString();
      case "spliterator" -> Spliterators.spliteratorUnknownSize(((Iterable<?>) face).iterator(), 0);
      default -> faced(face, call(method, arguments));
    };
  }

  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    Call call = new Call(client);
    @Nullable Call outer = call.enter();
    Object result;
    try {
      result = tried(call, method, arguments);
    } catch (InvocationTargetException error) {
      Call.leave(outer);
      call.settleFailed();
      RuntimeException refusal = call.refusal();
      throw refusal != null ? refusal : error.getCause() != null ? error.getCause() : error;
    }
    Call.leave(outer);
    RuntimeException refusal = call.refusal();
    if (refusal != null) { // A driver that goes on all the same shows nothing too early.
      call.settleFailed();
      throw refusal;
    }
    call.settle();
    return result;
  }

  /** Calls, and again after each pause: what waits for its server keeps no connection meanwhile. */
  private @Nullable Object tried(Call call, Method method, Object[] arguments)
      throws ReflectiveOperationException {
    try {
      while (true) {
        try {
          Object result = method.invoke(real, arguments);
          if (!call.isRetried()) {
            return result;
          }
        } catch (InvocationTargetException error) {
          if (!call.isRetried()) {
            throw error;
          }
        }
        call.pause();
      }
    } catch (MongoInterruptedException error) {
      throw new InvocationTargetException(error);
    } finally {
      call.end();
    }
  }

  private @Nullable Object faced(Object face, @Nullable Object result) {
    if (result == real) {
      return face;
    }
    return result != null && FACED.stream().anyMatch(type -> type.isInstance(result))
        ? of(client, result)
        : result;
  }
}
