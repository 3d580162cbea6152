package io.antipode.messages;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Objects that stand for others: they implement the same interfaces. */
public final class Proxies {
  private Proxies() {}

  /** Returns a proxy of an object with all of its public interfaces. */
  public static Object of(Object real, InvocationHandler handler) {
    Set<Class<?>> types = new LinkedHashSet<>();
    for (Class<?> each = real.getClass(); each != null; each = each.getSuperclass()) {
      for (Class<?> type : each.getInterfaces()) {
        if (Modifier.isPublic(type.getModifiers())) {
          types.add(type);
        }
      }
    }
    ClassLoader loader = real.getClass().getClassLoader();
    return Proxy.newProxyInstance(loader, types.toArray(Class<?>[]::new), handler);
  }

  /** Returns whether an object is a proxy whose handler is of a type. */
  public static boolean isOf(Object object, Class<? extends InvocationHandler> handler) {
    return Proxy.isProxyClass(object.getClass())
        && handler.isInstance(Proxy.getInvocationHandler(object));
  }

  /** Calls the method of the object itself; two proxies are equal where they are the same. */
  public static @Nullable Object invoke(
      Object face, Method method, Object real, Object @Nullable [] arguments) throws Throwable {
    if (method.getName().equals("equals") && arguments != null) {
      return face == arguments[0];
    }
    if (method.getName().equals("hashCode")) {
      return System.identityHashCode(face);
    }
    try {
      return method.invoke(real, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() == null ? error : error.getCause();
    }
  }
}
