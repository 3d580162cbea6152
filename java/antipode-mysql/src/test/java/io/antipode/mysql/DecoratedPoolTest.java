package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Pools in decorators that throw unchecked exceptions. No server is asked. */
class DecoratedPoolTest {
  private final List<String> called = new ArrayList<>();

  private static <T> T object(Class<T> type, InvocationHandler handler) {
    return type.cast(
        Proxy.newProxyInstance(
            DecoratedPoolTest.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @Test
  void aConnectionWhoseDecoratorFailsGoesBackToItsPool() {
    Connection failing =
        object(
            Connection.class,
            (self, method, arguments) -> {
              called.add(method.getName());
              if (method.getName().equals("close")) {
                return null;
              }
              throw new IllegalStateException("of the decorator");
            });
    DataSource pool = object(DataSource.class, (self, method, arguments) -> failing);
    try (MySqlShim shim = MySqlShim.builder("posts", "jdbc:mysql://127.0.0.1:1/app").register()) {
      DataSource instrumented = shim.instrument(pool);
      assertThatThrownBy(instrumented::getConnection).hasStackTraceContaining("of the decorator");
      assertThat(called).contains("close");
    }
  }
}
