package io.antipode.programs;

import io.antipode.AntipodeException;
import java.sql.SQLException;
import java.util.Arrays;

/** What mappers throw, as applications without one would see it. */
final class Mapped {
  private Mapped() {}

  /** A call that returns something. */
  @FunctionalInterface
  interface Call<T> {
    T call() throws Exception;
  }

  /** The mapper refused a call without its server, or the application gave up. */
  static final class RefusedException extends Exception {
    private RefusedException(RuntimeException cause) {
      super(cause);
    }
  }

  /** Returns what a call returns. What its error was made of is thrown in place of that. */
  static <T> T call(Call<T> call) throws Exception {
    try {
      return call.call();
    } catch (RuntimeException error) {
      for (Throwable each = error; each != null; each = each.getCause()) {
        if (each instanceof SQLException refused) {
          throw refused;
        }
        if (each instanceof RuntimeException own && isOurs(own)) {
          throw own;
        }
      }
      throw new RefusedException(error);
    }
  }

  /** Returns whether the library threw it. */
  private static boolean isOurs(RuntimeException error) {
    return error instanceof AntipodeException
        || Arrays.stream(error.getStackTrace())
            .map(StackTraceElement::getClassName)
            .filter(name -> !name.startsWith("java.") && !name.startsWith("jdk."))
            .findFirst()
            .filter(name -> name.startsWith("io.antipode."))
            .filter(name -> !name.startsWith("io.antipode.programs."))
            .isPresent();
  }
}
