package io.antipode.jdbc;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A result whose statement is the one that the application has, not the driver's. */
final class LentRows implements InvocationHandler {
  /** The interfaces of a driver's results, which casts may name. */
  private static final ClassValue<Class<?>[]> INTERFACES =
      new ClassValue<>() {
        @Override
        protected Class<?>[] computeValue(Class<?> type) {
          List<Class<?>> found = new ArrayList<>();
          for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Class<?> one : each.getInterfaces()) {
              if (Modifier.isPublic(one.getModifiers()) && !found.contains(one)) {
                found.add(one);
              }
            }
          }
          Class<?>[] all = found.toArray(Class<?>[]::new);
          return ResultSet.class.isAssignableFrom(proxied(type, all))
              ? all
              : new Class<?>[] {ResultSet.class};
        }
      };

  private final ResultSet rows;

  /** As the application has it; null where the driver made it for itself. */
  private final @Nullable Statement statement;

  private final BorrowedConnection borrowed;

  private LentRows(ResultSet rows, @Nullable Statement statement, BorrowedConnection borrowed) {
    this.rows = rows;
    this.statement = statement;
    this.borrowed = borrowed;
  }

  /** Returns the class of proxies with these interfaces; one of none where its loader has none. */
  private static Class<?> proxied(Class<?> type, Class<?>[] interfaces) {
    try {
      InvocationHandler none = (proxy, method, args) -> null;
      return Proxy.newProxyInstance(type.getClassLoader(), interfaces, none).getClass();
    } catch (IllegalArgumentException hidden) {
      return Object.class;
    }
  }

  /**
   * Returns a result as the application sees it.
   *
   * @param statement that it is of, as the application has it; null for a driver's own
   */
  static ResultSet of(ResultSet rows, @Nullable Statement statement, BorrowedConnection borrowed) {
    Class<?> type = rows.getClass();
    return (ResultSet)
        Proxy.newProxyInstance(
            type.getClassLoader(), INTERFACES.get(type), new LentRows(rows, statement, borrowed));
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    String name = method.getName();
    if (name.equals("equals")) {
      return args != null && (proxy == args[0] || rows.equals(args[0]));
    }
    @Nullable Object result = invoked(method, args);
    if (name.equals("getStatement") && statement != null) {
      return statement;
    }
    if (name.equals("unwrap") || (name.equals("getStatement") && result != null)) {
      borrowed.unwraps();
    }
    return result;
  }

  private @Nullable Object invoked(Method method, Object @Nullable [] args) throws Throwable {
    try {
      return method.invoke(rows, args);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
