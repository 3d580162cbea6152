package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.barrier.UnreachableException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import org.junit.jupiter.api.Test;

/** What a question of the library's own on the application's connection may throw. */
class LinkTest {
  /** A driver that lost its place in what the server sends: no answer, and no error of ours. */
  @Test
  void whatADriverThrowsIsNoAnswer() {
    Connection connection =
        (Connection)
            Proxy.newProxyInstance(
                LinkTest.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (self, method, arguments) -> {
                  throw new ArrayIndexOutOfBoundsException("Index 9 out of bounds");
                });
    Link link = Link.on(connection, null);
    assertThatThrownBy(() -> link.ask("SELECT 1"))
        .isInstanceOf(UnreachableException.class)
        .hasMessageContaining("the driver failed");
    assertThatThrownBy(() -> link.execute("ROLLBACK"))
        .isInstanceOf(SQLException.class)
        .matches(error -> Errors.isLoss((SQLException) error));
  }
}
