package io.antipode.jdbc;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import net.ttddyy.dsproxy.proxy.ProxyJdbcObject;
import org.jspecify.annotations.Nullable;

/** What a driver reports of the database, with the statements that it sends for that. */
final class Metadata implements InvocationHandler {
  private final DatabaseMetaData drivers;
  private final Connection connection;
  private final BorrowedConnection borrowed;

  private Metadata(DatabaseMetaData drivers, Connection connection, BorrowedConnection borrowed) {
    this.drivers = drivers;
    this.connection = connection;
    this.borrowed = borrowed;
  }

  /**
   * Returns metadata of a connection whose questions are noticed.
   *
   * @param connection as the application has it
   */
  static DatabaseMetaData of(
      DatabaseMetaData drivers, Connection connection, BorrowedConnection borrowed) {
    return (DatabaseMetaData)
        Proxy.newProxyInstance(
            ProxyJdbcObject.class.getClassLoader(),
            new Class<?>[] {DatabaseMetaData.class},
            new Metadata(drivers, connection, borrowed));
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    if (method.getName().equals("getConnection")) {
      return connection;
    }
    // Whatever else there is the drivers know, or ask for without a table.
    if (method.getName().equals("unwrap")) {
      borrowed.unwraps();
    }
    return method.getReturnType() == ResultSet.class
        ? LentRows.of((ResultSet) borrowed.drivers(() -> invoked(method, args)), null, borrowed)
        : invoked(method, args);
  }

  private Object invoked(Method method, Object @Nullable [] args) throws Throwable {
    try {
      return method.invoke(drivers, args);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
